"""Reports what came of jobs, under the token of each lease, and gives back those that were not sent."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidings.db.engine import Engine
from tidings.db.halving import write_by_halves
from tidings.errors import StatementFailed
from tidings.roles.worker.operations import LeasedJob, Report, WorkerOperations
from tidings.runtime.outbox import Outbox
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import DeliveriesSucceeded, JobsGivenBack, LeaseLost, RowSetAside


class GivenBack(NamedTuple):
    """A job that was not sent; anybody may lease it after `delay` seconds."""

    job: LeasedJob
    reason: str
    delay: float


class Stored(NamedTuple):
    """Of the reports that were made: jobs whose lease was no longer ours, and what the database refused."""

    lost: set[int]
    refused: list[tuple[Report, StatementFailed]]


class Reporter:
    """`on_heard` is called when reports were stored."""

    def __init__(self, engine: Engine, worker_id: str, on_heard: Callable[[], None]) -> None:
        self._engine = engine
        self._worker_id = worker_id
        self._on_heard = on_heard
        self._outbox = Outbox[Report, GivenBack](worker_id, self._say)
        self.start, self.close, self.report = self._outbox.start, self._outbox.close, self._outbox.was_done
        self.lost = 0

    @property
    def unheard(self) -> int:
        return self._outbox.unheard

    def give_back(self, job: LeasedJob, reason: str, delay: float = 0.0) -> None:
        self._outbox.was_not_begun(GivenBack(job, reason, delay))

    async def _say(self, reports: Sequence[Report], given_back: Sequence[GivenBack]) -> None:
        async def store(operations: WorkerOperations, carefully: bool) -> Stored:
            stored = await _report(operations, reports, carefully)
            for delay, jobs in _by_delay(given_back).items():
                await operations.give_back(jobs, delay, secrets.randbits(63))
            return stored

        stored = await WorkerOperations.careful_step(self._engine, store)
        self.lost += len(stored.lost)
        self._announce(reports, given_back, stored)
        self._on_heard()

    def _announce(self, reports: Sequence[Report], given_back: Sequence[GivenBack], stored: Stored) -> None:
        if took := tuple(report.duration_ms for report in reports if report.error_code is None):
            tell(DeliveriesSucceeded(self._worker_id, took))
        for report in reports if stored.lost else ():
            job = report.job
            if job.job_id in stored.lost:
                about = (job.correlation_id, job.event_id, job.saga_id, job.job_id)
                lease = (self._worker_id, str(job.lease_until))
                tell(LeaseLost(*about, *lease, report.response_status, report.error_code))
        for report, error in stored.refused:
            tell(RowSetAside("worker", f"job:{report.job.job_id}", error.what))
        for reason in dict.fromkeys(one.reason for one in given_back):
            ids = tuple(one.job.job_id for one in given_back if one.reason == reason)
            tell(JobsGivenBack(self._worker_id, ids, reason))


async def _report(operations: WorkerOperations, reports: Sequence[Report], carefully: bool) -> Stored:
    if not reports:
        return Stored(set(), [])
    if not carefully:
        return Stored(await operations.report(reports), [])
    lost: set[int] = set()

    async def write(some: Sequence[Report]) -> None:
        lost.update(await operations.report(some))

    return Stored(lost, await write_by_halves(operations, reports, write))


def _by_delay(given_back: Sequence[GivenBack]) -> dict[float, list[LeasedJob]]:
    found: dict[float, list[LeasedJob]] = defaultdict(list)
    for one in given_back:
        found[one.delay].append(one.job)
    return found
