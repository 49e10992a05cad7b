"""What a router would decide about events now, without writing anything."""

from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.db.session import Row
from tidings.decisions.routing import Configuration, Decision, Subscriber
from tidings.model.event import LoggedEvent
from tidings.model.route import Route, route_from
from tidings.model.subscription import Subscription
from tidings.roles.observer.listing import Shown
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.observer.subscriptions import SubscriptionObserver

_PAGE = 1000


@dataclass(frozen=True)
class Previewed:
    """One event and what it would come to, whatever was decided about it before."""

    event: LoggedEvent
    decisions: tuple[Decision, ...]


async def preview(engine: Engine, *, event_id: int | None = None, last: int = 1) -> list[Previewed]:
    """Of one event, or of the last ones, newest first."""
    configuration = Configuration(0, await all_routes(engine), await _subscribers(engine))
    events = await RoutingObserver.step(engine, lambda observer: _events(observer, event_id, last))
    return [Previewed(event, configuration.decide(event)) for event in events]


async def _events(observer: RoutingObserver, event_id: int | None, last: int) -> list[LoggedEvent]:
    found = await observer.events(last) if event_id is None else [await observer.event(event_id)]
    return [logged(one) for one in found]


def logged(row: Row) -> LoggedEvent:
    return LoggedEvent(*(row[name] for name in LoggedEvent.__dataclass_fields__))


async def all_routes(engine: Engine) -> list[Route]:
    async def all_pages(observer: RoutingObserver) -> list[Route]:
        found: list[Shown] = []
        while page := await observer.routes(_PAGE, after=found[-1]["id"] if found else 0):
            found += page
        return [route_from(one) for one in found]

    return await RoutingObserver.step(engine, all_pages)


async def _subscribers(engine: Engine) -> list[Subscriber]:
    async def all_pages(observer: SubscriptionObserver) -> list[Subscriber]:
        found: list[Subscriber] = []
        while page := await observer.subscriptions(_PAGE, after=found[-1].id if found else 0):
            found += [subscriber(seen.subscription) for seen in page]
        return found

    return await SubscriptionObserver.step(engine, all_pages)


def subscriber(one: Subscription) -> Subscriber:
    return Subscriber(one.id, one.event_domain, one.event_type, one.active, one.verified)
