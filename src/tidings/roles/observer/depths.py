"""How much waits in each stage, for how long, and how far routers are behind: a few reads along indexes."""

import datetime

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.model.depths import Depth, Depths, RouterLag
from tidings.model.saga import SagaStatus

COUNTED_TO = 100_000
_MOST_ROUTERS = 1000
_SECONDS_ALIVE = 30.0


class DepthObserver(Operations):
    """Its statements are the observer's own."""

    async def depths(self, counted_to: int = COUNTED_TO) -> Depths:
        alive = await self._rows("alive_processes", seconds=_SECONDS_ALIVE)
        return Depths(
            {
                "sagas_pending": await self._due(SagaStatus.PENDING, counted_to),
                "sagas_retry_due": await self._due(SagaStatus.PENDING_RETRY, counted_to),
                "sagas_retry_later": await self._later(counted_to),
                **await self._active(),
                "results_unapplied": _depth(await self._row("unapplied_depth", most=counted_to), "jobs"),
            },
            await self._lags(),
            {row["process"]: row["alive"] for row in alive},
            counted_to,
        )

    async def _due(self, status: SagaStatus, most: int) -> Depth:
        return _depth(await self._row("due_depth", status=status.value, most=most), "sagas")

    async def _later(self, most: int) -> Depth:
        row = await self._row("later_depth", most=most)
        return Depth(int(row["sagas"]) if row else 0, 0.0)

    async def _active(self) -> dict[str, Depth]:
        rows = {row["status"]: row for row in await self._rows("active_depths")}
        return {f"jobs_{status.lower()}": _depth(rows.get(status), "jobs") for status in ("Pending", "Leased")}

    async def _lags(self) -> tuple[RouterLag, ...]:
        return tuple(
            RouterLag(row["worker_name"], max(0, (row["newest"] or 0) - row["position"]), _age(row), row["holes"])
            for row in await self._rows("router_lags", most=_MOST_ROUTERS)
        )


def _depth(row: Row | None, counted: str) -> Depth:
    return Depth(int(row[counted]), _age(row)) if row else Depth(0, 0.0)


def _age(row: Row) -> float:
    oldest: datetime.datetime | None = row["oldest"]
    return max(0.0, (row["now"] - oldest).total_seconds()) if oldest else 0.0
