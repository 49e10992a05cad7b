"""What the lease cleaner asks of the database and writes into it."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from tidings.db.operations import Operations


@dataclass(frozen=True)
class StaleLease:
    job_id: int
    saga_id: int
    lease_resets: int
    worker_id: str | None
    lease_until: datetime.datetime


class CleanerOperations(Operations):
    async def stale_leases(self, limit: int) -> list[StaleLease]:
        return [StaleLease(**row) for row in await self._rows("stale_leases", limit=limit)]

    async def has_stale(self) -> bool:
        row = await self._row("has_stale")
        return row is not None and bool(row["has_stale"])

    async def reset_leases(self, ids: Sequence[int], token: int) -> None:
        if ids:
            await self._run("reset_leases", ids=ids, token=token)

    async def expire_leases(self, ids: Sequence[int], token: int) -> None:
        if ids:
            await self._run("expire_leases", ids=ids, token=token)
