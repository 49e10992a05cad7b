"""What the subscription admin may ask of the database."""

import datetime
from dataclasses import asdict

from tidings.db.operations import AuditedOperations
from tidings.model.subscription import NewSubscription, Subscription, subscription_from

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WRITTEN = ("callback_url", "verified", "config_version")


class SubscriptionOperations(AuditedOperations):
    async def microseconds(self) -> int:
        """The database's clock, since 1970."""
        row = await self._row("clock")
        assert row is not None
        return int((row["now"] - _EPOCH) / datetime.timedelta(microseconds=1))

    async def insert(self, new: NewSubscription) -> int:
        row = await self._row(
            "insert_subscription",
            event_domain=new.event_domain,
            event_type=new.event_type,
            callback_url=new.callback_url,
            verification=str(new.verification),
            description=new.description,
            **asdict(new.limits),
        ) or await self._row("inserted_id")
        assert row is not None
        return int(row["id"])

    async def subscription(self, id: int) -> Subscription | None:
        row = await self._row("subscription", id=id)
        return subscription_from(row) if row else None

    async def subscription_to_change(self, id: int) -> Subscription | None:
        row = await self._row("subscription_to_change", id=id)
        return subscription_from(row) if row else None

    async def change(self, subscription: Subscription) -> None:
        columns = {name: value for name, value in asdict(subscription).items() if name not in _WRITTEN}
        await self._run("change_subscription", **{**columns, "verification": str(subscription.verification)})

    async def replace_headers(self, id: int, sealed: bytes | None) -> None:
        await self._run("replace_headers", id=id, headers=sealed)

    async def add_secret(self, id: int, sealed: bytes) -> bool:
        row = await self._row("add_secret", id=id, sealed=sealed)
        return row is not None and row["added"] == 1
