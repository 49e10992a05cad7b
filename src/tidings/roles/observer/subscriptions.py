"""What the observer can tell about subscriptions: everything but their secrets and headers."""

import datetime
from dataclasses import dataclass

from tidings.db.session import Row
from tidings.model.subscription import Subscription, subscription_from


@dataclass(frozen=True)
class SeenSubscription:
    subscription: Subscription
    created_at: datetime.datetime
    updated_at: datetime.datetime


def seen(row: Row) -> SeenSubscription:
    return SeenSubscription(subscription_from(row), row["created_at"], row["updated_at"])
