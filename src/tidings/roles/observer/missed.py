"""What a replay would make up for: past events that would go to a subscription now, and that it never got."""

import datetime
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.db.operations import Operations
from tidings.decisions.routing import Configuration
from tidings.model.event import LoggedEvent
from tidings.model.subscription import Subscription
from tidings.roles.observer.preview import all_routes, logged, subscriber

LOOKED_AT = 1_000


@dataclass(frozen=True)
class Missed:
    """Of the first `looked_at` events of the span. `is_all`: there are no more of them."""

    looked_at: int
    missing: int
    is_all: bool
    until: datetime.datetime | None


class PastObserver(Operations):
    async def since(self, moment: datetime.datetime, limit: int) -> list[tuple[LoggedEvent, datetime.datetime]]:
        rows = await self._rows("events_since", since=moment, limit=limit)
        return [(logged(row), row["created_at"]) for row in rows]

    async def undelivered(self, ids: list[int], subscription_id: int) -> set[int]:
        """Those that a router has decided about and that this subscription has no delivery of."""
        if not ids:
            return set()
        decided = {row["event_id"] for row in await self._rows("decided_among", ids=ids)}
        there = await self._rows("delivered_among", ids=ids, subscription_id=subscription_id)
        return decided - {row["event_id"] for row in there}


async def missed(engine: Engine, subscription: Subscription, since: datetime.datetime) -> Missed:
    """As a replay would decide at this moment; nothing is written."""
    configuration = Configuration(0, await all_routes(engine), [subscriber(subscription)])

    async def look(observer: PastObserver) -> Missed:
        past = await observer.since(since, LOOKED_AT)
        wanted = [event.id for event, _ in past if _is_for(configuration, event)]
        missing = await observer.undelivered(wanted, subscription.id)
        return Missed(len(past), len(missing), len(past) < LOOKED_AT, past[-1][1] if past else None)

    return await PastObserver.step(engine, look)


def _is_for(configuration: Configuration, event: LoggedEvent) -> bool:
    return any(decision.subscriptions for decision in configuration.decide(event))
