"""What a router would decide about events now, without writing anything."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidings.db.engine import Engine
from tidings.db.session import Row
from tidings.decisions.routing import Configuration, Decision, Subscriber
from tidings.model.event import LoggedEvent
from tidings.model.route import Route, route_from
from tidings.model.subscription import Subscription
from tidings.roles.observer.filters import EventFilter, SubscriptionFilter
from tidings.roles.observer.listing import Page, Place, Shown
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.observer.searching import EventSearcher

_PAGE = 1000


@dataclass(frozen=True)
class Previewed:
    """One event and what it would come to, whatever was decided about it before."""

    event: LoggedEvent
    decisions: tuple[Decision, ...]


async def preview(engine: Engine, *, event_id: int | None = None, last: int = 1) -> list[Previewed]:
    """Of one event, or of the last ones, newest first."""
    configuration = Configuration(0, await all_routes(engine), await _subscribers(engine))
    events = [logged(row) for row in await _events(engine, event_id, last)]
    return [Previewed(event, configuration.decide(event)) for event in events]


async def _events(engine: Engine, event_id: int | None, last: int) -> Sequence[Shown]:
    if event_id is not None:
        return [await RoutingObserver.step(engine, lambda observer: observer.event(event_id))]
    return (await EventSearcher.step(engine, lambda observer: observer.page(EventFilter(), last, None))).items


def logged(row: Row) -> LoggedEvent:
    return LoggedEvent(*(row[name] for name in LoggedEvent.__dataclass_fields__))


async def all_routes(engine: Engine) -> list[Route]:
    found = await RoutingObserver.step(engine, lambda observer: _all(partial(observer.routes, _PAGE)))
    return [route_from(one) for one in found]


async def _subscribers(engine: Engine) -> list[Subscriber]:
    everyone = SubscriptionFilter()
    found = await PageObserver.step(engine, lambda observer: _all(partial(observer.subscriptions, everyone, _PAGE)))
    return [subscriber(one.subscription) for one in found]


async def _all(page_at: Callable[[Place | None], Awaitable[Page]]) -> list[Any]:
    page = await page_at(None)
    found = [*page.items]
    while page.next:
        page = await page_at(page.next)
        found += page.items
    return found


def subscriber(one: Subscription) -> Subscriber:
    return Subscriber(one.id, one.event_domain, one.event_type, one.active, one.verified)
