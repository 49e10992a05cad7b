"""What the worker asks of the database and writes into it; every statement takes a whole batch."""

import datetime
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidings.db.operations import Operations
from tidings.model.job import JobStatus


class LeasedJob(NamedTuple):
    """One attempt, and the token that proves that it is ours."""

    job_id: int
    saga_id: int
    subscription_id: int
    attempt_no: int
    lease_until: datetime.datetime
    event_id: int
    correlation_id: str
    event_type: str
    payload: str
    token: int = 0


@dataclass(frozen=True)
class EndpointRow:
    """A subscription as the worker sees it; secrets and headers are sealed."""

    id: int
    callback_url: str
    secrets: bytes | None
    headers: bytes | None
    active: bool
    verified: bool
    timeout_seconds: float | None
    max_in_flight: int | None


class Report(NamedTuple):
    """What came of one job."""

    job: LeasedJob
    status: JobStatus
    response_status: int | None
    error_code: str | None
    retry_after: int | None
    excerpt: bytes
    duration_ms: int


class WorkerOperations(Operations):
    async def installation_id(self) -> str:
        row = await self._row("installation")
        assert row is not None
        return str(row["installation_id"])

    async def pending_jobs(self, since: datetime.datetime, limit: int) -> dict[int, datetime.datetime]:
        """When each became ready, by its id; locked."""
        return {row["id"]: row["ready_at"] for row in await self._rows("pending_jobs", since=since, limit=limit)}

    async def has_pending(self) -> bool:
        """Whether there is any that may be leased; nothing is locked."""
        row = await self._row("has_pending")
        return row is not None and bool(row["has_pending"])

    async def lease_jobs(self, ids: Sequence[int], lease_seconds: float, worker_id: str, token: int) -> None:
        await self._run("lease_jobs", ids=ids, lease_seconds=lease_seconds, worker_id=worker_id, token=token)

    async def leased_jobs(self, ids: Sequence[int], token: int) -> list[LeasedJob]:
        return [LeasedJob(**row, token=token) for row in await self._rows("leased_jobs", ids=ids)]

    async def endpoints(self, ids: Collection[int]) -> list[EndpointRow]:
        return [
            EndpointRow(**{**row, "active": bool(row["active"]), "verified": bool(row["verified"])})
            for row in await self._rows("endpoints", ids=list(ids))
        ]

    async def report(self, reports: Sequence[Report]) -> set[int]:
        """Stores what came of these jobs; returns those whose lease was no longer ours."""
        ids, tokens = [one.job.job_id for one in reports], [one.job.token for one in reports]
        stored = await self._run(
            "report",
            ids=ids,
            tokens=tokens,
            statuses=[one.status.value for one in reports],
            response_statuses=[one.response_status for one in reports],
            error_codes=[one.error_code for one in reports],
            retry_afters=[one.retry_after for one in reports],
            excerpts=[one.excerpt or None for one in reports],
            durations=[one.duration_ms for one in reports],
        )
        if stored == len(ids):
            return set()
        # A report whose answer was lost is made again, and finds that it was heard the first time.
        ours = {row["id"] for row in await self._rows("still_ours", ids=ids, tokens=tokens)}
        return set(ids) - ours

    async def give_back(self, jobs: Sequence[LeasedJob], delay: float, new_token: int) -> None:
        """They were not sent; those whose lease is no longer ours stay as they are."""
        ids, tokens = [job.job_id for job in jobs], [job.token for job in jobs]
        await self._run("give_back", ids=ids, tokens=tokens, delay=delay, new_token=new_token)
