"""How much waits in each stage, for how long, and how far routers are behind: a few reads along indexes."""

import datetime

from tidings.db.session import Row
from tidings.model.depths import Depth, Depths, RouterLag, TaskDepth
from tidings.model.saga import SagaStatus
from tidings.roles.observer.listing import MOST_ROUTERS
from tidings.roles.observer.operations import ObserverOperations

COUNTED_TO = 100_000
WIDEST = 2_000
_MOST_WINDOWS = 100
_MOST_TASK_TYPES = 200
_TASKS_COUNTED_TO = 10_000


class DepthObserver(ObserverOperations):
    async def depths(self, counted_to: int = COUNTED_TO, windows_below: int = WIDEST) -> Depths:
        """Windows are shown where they are narrower than `windows_below`, the narrowest of them."""
        return Depths(
            {
                "sagas_pending": await self._due(SagaStatus.PENDING, counted_to),
                "sagas_retry_due": await self._due(SagaStatus.PENDING_RETRY, counted_to),
                "sagas_retry_later": await self._later(counted_to),
                **await self._active(),
                "results_unapplied": _depth(await self._row("unapplied_depth", most=counted_to), "jobs"),
                "tasks_running": _depth(await self._row("running_tasks_depth", most=counted_to), "tasks"),
            },
            await self._lags(),
            await self.alive(),
            counted_to,
            await self.tasks(min(counted_to, _TASKS_COUNTED_TO)),
            await self._windows(windows_below),
        )

    async def tasks(self, most: int = _TASKS_COUNTED_TO) -> tuple[TaskDepth, ...]:
        """The types that wait, one after the other: so their tasks are not looked through to find them."""
        found: list[TaskDepth] = []
        while len(found) < _MOST_TASK_TYPES:
            row = await self._row("task_depth", after=found[-1].biz_type if found else "", most=most)
            if row is None:
                break
            found.append(TaskDepth(row["biz_type"], int(row["waiting"]), int(row["due"] or 0), _age(row)))
        return tuple(found)

    async def _due(self, status: SagaStatus, most: int) -> Depth:
        return _depth(await self._row("due_depth", status=status.value, most=most), "sagas")

    async def _later(self, most: int) -> Depth:
        row = await self._row("later_depth", most=most)
        return Depth(int(row["sagas"]) if row else 0, 0.0)

    async def _active(self) -> dict[str, Depth]:
        rows = {row["status"]: row for row in await self._rows("active_depths")}
        return {f"jobs_{status.lower()}": _depth(rows.get(status), "jobs") for status in ("Pending", "Leased")}

    async def _windows(self, below: int) -> dict[int, int]:
        rows = await self._rows("narrow_lanes", below=below, most=_MOST_WINDOWS)
        return {row["subscription_id"]: row["window_size"] for row in rows}

    async def _lags(self) -> tuple[RouterLag, ...]:
        routers = await self._rows("router_lags", most=MOST_ROUTERS)
        # Most of them are at the end of the log, where nothing waits.
        behind = sorted({row["position"] for row in routers if row["position"] < (row["newest"] or 0)})
        rows = await self._rows("first_events_after", places=[(position,) for position in behind])
        oldest = {row["position"]: row["created_at"] for row in rows}
        return tuple(
            RouterLag(
                row["worker_name"],
                max(0, (row["newest"] or 0) - row["position"]),
                _age({**row, "oldest": oldest.get(row["position"])}),
                row["holes"],
            )
            for row in routers
        )


def _depth(row: Row | None, counted: str) -> Depth:
    return Depth(int(row[counted]), _age(row)) if row else Depth(0, 0.0)


def _age(row: Row) -> float:
    oldest: datetime.datetime | None = row["oldest"]
    return max(0.0, (row["now"] - oldest).total_seconds()) if oldest else 0.0
