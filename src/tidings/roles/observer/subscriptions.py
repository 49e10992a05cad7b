"""What the observer can tell about subscriptions: everything but their secrets and headers."""

import datetime
from dataclasses import dataclass

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.errors import NotFound
from tidings.model.id import is_id
from tidings.model.subscription import Subscription, subscription_from


@dataclass(frozen=True)
class SeenSubscription:
    subscription: Subscription
    created_at: datetime.datetime
    updated_at: datetime.datetime


class SubscriptionObserver(Operations):
    async def subscriptions(self, limit: int, after: int = 0) -> list[SeenSubscription]:
        rows = await self._rows("subscriptions", limit=limit, after=after)
        return [seen(row) for row in rows]

    async def subscription(self, id: int) -> SeenSubscription:
        row = await self._row("subscription", id=id) if is_id(id) else None
        if row is None:
            raise NotFound(f"There is no subscription {id}.", "`tidings subscriptions list` shows those there are.")
        return seen(row)


def seen(row: Row) -> SeenSubscription:
    return SeenSubscription(subscription_from(row), row["created_at"], row["updated_at"])
