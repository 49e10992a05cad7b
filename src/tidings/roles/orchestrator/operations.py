"""What the orchestrator asks of the database and writes into it; every statement takes a whole batch."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.decisions.advancing import Buried, JobResult, Retried
from tidings.decisions.pacing import Window
from tidings.model.job import JobStatus
from tidings.model.saga import SagaStatus
from tidings.model.totals import TotalOf

Moment = datetime.datetime


@dataclass(frozen=True)
class Subscription:
    """As far as sagas depend on it; None stands for the setting of all."""

    id: int
    active: bool
    verified: bool
    paused: bool
    max_retry_limit: int | None
    base_delay_seconds: float | None

    @property
    def may_be_sent_to(self) -> bool:
        return self.active and self.verified and not self.paused


class FinishedJob(NamedTuple):
    """A result, and what the notices about it say."""

    result: JobResult
    event_id: int
    correlation_id: str
    worker_id: str | None
    lease_until: Moment
    duration_ms: int | None = None


class Lane(NamedTuple):
    """The sagas of one subscription: how many may start now, and from which due times on to look."""

    subscription_id: int
    room: int
    pending_since: Moment
    retry_since: Moment


class LaneRow(NamedTuple):
    """A window as all orchestrators know it; `updated_at` is when one of them last changed it."""

    subscription_id: int
    window: Window
    updated_at: Moment


@dataclass(frozen=True)
class UnderWay:
    """Jobs of each subscription; those that workers have too many of; where to begin looking; and changed windows."""

    active: dict[int, int]
    crowded: frozenset[int]
    oldest: Moment | None
    lanes: list[LaneRow]


class NewSaga(NamedTuple):
    """One that was made lately, or whose time has come lately, and which is due."""

    id: int
    subscription_id: int
    next_attempt_at: Moment


class DueSaga(NamedTuple):
    id: int
    subscription_id: int
    status: SagaStatus
    attempt_count: int
    next_attempt_at: Moment
    final_error_code: str | None
    event_id: int
    correlation_id: str


@dataclass(frozen=True)
class LastJob:
    """What the notice about a burial says of the last attempt."""

    job_id: int
    worker_id: str | None
    lease_until: Moment


class OrchestratorOperations(Operations):
    async def config_version(self) -> tuple[int, Moment, int]:
        """And what time it is, and which saga is the newest."""
        row = await self._row("config_version")
        assert row is not None
        return row["version"], row["now"], row["newest"]

    async def subscriptions(self) -> dict[int, Subscription]:
        return {
            row["id"]: Subscription(
                row["id"],
                bool(row["active"]),
                bool(row["verified"]),
                bool(row["paused"]),
                row["max_retry_limit"],
                row["base_delay_seconds"],
            )
            for row in await self._rows("subscriptions")
        }

    async def under_way(self, active_since: Moment, finished_since: int, lanes_since: Moment) -> UnderWay:
        rows = await self._rows(
            "under_way", active_since=active_since, finished_since=finished_since, lanes_since=lanes_since
        )
        jobs = [row for row in rows if row["window_size"] is None]
        return UnderWay(
            {row["subscription_id"]: int(row["jobs"]) for row in jobs},
            frozenset(row["subscription_id"] for row in jobs if row["given_back"]),
            min((row["oldest"] for row in jobs), default=None),
            [_lane(row) for row in rows if row["window_size"] is not None],
        )

    async def lock_lanes(self, ids: Sequence[int]) -> dict[int, Window]:
        rows = await self._rows("lock_lanes", ids=ids)
        return {row["subscription_id"]: _lane(row).window for row in rows}

    async def add_lanes(self, windows: Mapping[int, Window]) -> None:
        """Where another one was faster, its lanes stay."""
        if windows:
            rows = [(lane, one.size, one.failures, one.failed_at, one.error_code) for lane, one in windows.items()]
            await self._run("add_lanes", lanes=rows)

    async def change_lanes(self, windows: Mapping[int, Window]) -> None:
        if windows:
            await self._run(
                "change_lanes",
                ids=[*windows],
                sizes=[one.size for one in windows.values()],
                failures=[one.failures for one in windows.values()],
                failed_at=[one.failed_at for one in windows.values()],
                error_codes=[one.error_code for one in windows.values()],
            )

    async def finished_jobs(self, since: int, limit: int) -> list[FinishedJob]:
        return [
            FinishedJob(
                JobResult(
                    row["job_id"],
                    row["saga_id"],
                    row["subscription_id"],
                    JobStatus(row["status"]),
                    row["error_code"],
                    row["retry_after"],
                    SagaStatus(row["saga_status"]),
                    row["attempt_count"],
                ),
                row["event_id"],
                row["correlation_id"],
                row["worker_id"],
                row["lease_until"],
                row["duration_ms"],
            )
            for row in await self._rows("finished_jobs", since=since, limit=limit)
        ]

    async def has_news(self) -> bool:
        """Whether there is a result to take in, or a saga that is due; nothing is locked."""
        row = await self._row("has_news")
        return row is not None and bool(row["has_news"])

    async def mark_applied(self, job_ids: Sequence[int]) -> int:
        return await self._run("mark_applied", ids=job_ids)

    async def complete_sagas(self, ids: Sequence[int]) -> None:
        if ids:
            await self._run("complete_sagas", ids=ids)

    async def retry_sagas(self, retried: dict[int, Retried]) -> None:
        if retried:
            await self._run(
                "retry_sagas",
                ids=[*retried],
                delays=[one.delay for one in retried.values()],
                error_codes=[one.error_code for one in retried.values()],
            )

    async def bury_sagas(self, buried: dict[int, Buried]) -> None:
        """Status and dead letter together: one without the other must not be."""
        if buried:
            ids = [*buried]
            await self._run("bury_sagas", ids=ids, error_codes=[one.error_code for one in buried.values()])
            await self._run("write_dead_letters", ids=ids)

    async def last_jobs(self, saga_ids: Sequence[int]) -> dict[int, LastJob]:
        rows = await self._rows("last_jobs", ids=saga_ids) if saga_ids else ()
        return {row["saga_id"]: LastJob(row["job_id"], row["worker_id"], row["lease_until"]) for row in rows}

    async def bury_exhausted(self, ids: Sequence[int]) -> None:
        if ids:
            await self._run("bury_exhausted", ids=ids)
            await self._run("write_dead_letters", ids=ids)

    async def lanes_with_news(self, limit: int) -> list[int]:
        """Those of the newest first; one may come more than once."""
        return [row["subscription_id"] for row in await self._rows("lanes_with_news", limit=limit)]

    async def news(self, made_behind: int, due_since: Moment, limit: int) -> list[NewSaga]:
        """Up to `limit` first attempts, the newest first, and as many retries."""
        rows = await self._rows("news", made_behind=made_behind, due_since=due_since, limit=limit)
        return [NewSaga(row["id"], row["subscription_id"], row["next_attempt_at"]) for row in rows]

    async def due_sagas(self, lanes: Sequence[Lane]) -> list[tuple[int, int]]:
        """(subscription, saga), the longest due first in each lane."""
        rows = await self._rows("due_sagas", lanes=lanes) if lanes else ()
        return [(row["subscription_id"], row["id"]) for row in rows]

    async def lock_due(self, ids: Sequence[int]) -> list[DueSaga]:
        rows = await self._rows("lock_due", ids=ids) if ids else ()
        return [
            DueSaga(
                row["id"],
                row["subscription_id"],
                SagaStatus(row["status"]),
                row["attempt_count"],
                row["next_attempt_at"],
                row["final_error_code"],
                row["event_id"],
                row["correlation_id"],
            )
            for row in rows
        ]

    async def start_sagas(self, ids: Sequence[int]) -> None:
        if ids:
            await self._run("insert_jobs", ids=ids)
            await self._run("start_sagas", ids=ids)

    async def add_totals(self, totals: Sequence[TotalOf], slot: int) -> None:
        """Each is added to what this slot has of its span of time."""
        if totals:
            rows = [(one.subscription_id, one.place, slot, one.began_at, *one.total.counts) for one in totals]
            await self._run("add_totals", totals=rows)


def _lane(row: Row) -> LaneRow:
    window = Window(row["window_size"], row["failures"], row["last_failure_at"], row["last_error_code"])
    return LaneRow(row["subscription_id"], window, row["updated_at"])
