"""Reports what came of jobs, and gives back those that were not sent: in batches, again and again until it is heard.

While one report is on its way the next one gathers; a database that is away loses nothing that was sent.
"""

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidings.db.engine import Engine
from tidings.db.halving import write_by_halves
from tidings.errors import StatementDenied, StatementFailed, TidingsError
from tidings.roles.worker.operations import LeasedJob, Report, WorkerOperations
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import JobsGivenBack, LeaseLost, ReportDelayed, RowSetAside

BATCH = 500
LONGEST_PAUSE = 2.0


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
        self._reports: list[Report] = []
        self._given_back: list[GivenBack] = []
        self._news = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self.lost = 0

    @property
    def unheard(self) -> int:
        return len(self._reports) + len(self._given_back)

    def start(self) -> None:
        """Raises what ended it, if something did: whoever can't report must not send."""
        if self._task is None:
            self._task = asyncio.create_task(self._go_on(), name="reports")
        elif self._task.done():
            self._task.result()

    def report(self, report: Report) -> None:
        self._reports.append(report)
        self._news.set()

    def give_back(self, job: LeasedJob, reason: str, delay: float = 0.0) -> None:
        self._given_back.append(GivenBack(job, reason, delay))
        self._news.set()

    async def close(self, deadline: float) -> None:
        """Waits until everything is heard, for `deadline` seconds at most."""
        self._closing = True
        self._news.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=deadline)
            self._task.cancel()

    async def _go_on(self) -> None:
        failures = 0
        while not (self._closing and not self.unheard):
            await self._news.wait()
            self._news.clear()
            try:
                await self._flush()
                failures = 0
            except TidingsError as error:
                failures += 1
                tell(ReportDelayed(self._worker_id, self.unheard, error.what))
                await asyncio.sleep(min(0.05 * 2 ** min(failures, 10), LONGEST_PAUSE) * random.uniform(0.5, 1))
                self._news.set()

    async def _flush(self) -> None:
        while self.unheard:
            reports, given_back = self._reports[:BATCH], self._given_back[:BATCH]
            stored = await self._store(reports, given_back)
            del self._reports[: len(reports)], self._given_back[: len(given_back)]
            self.lost += len(stored.lost)
            self._announce(reports, given_back, stored)
            self._on_heard()

    async def _store(self, reports: Sequence[Report], given_back: Sequence[GivenBack]) -> Stored:
        """Once in a few statements; if the database refuses something of it, again by halves."""

        async def store(operations: WorkerOperations, carefully: bool) -> Stored:
            stored = await _report(operations, reports, carefully)
            for delay, jobs in _by_delay(given_back).items():
                await operations.give_back(jobs, delay, secrets.randbits(63))
            return stored

        try:
            return await WorkerOperations.step(self._engine, lambda operations: store(operations, False))
        except StatementDenied:
            raise
        except StatementFailed:
            return await WorkerOperations.step(self._engine, lambda operations: store(operations, True))

    def _announce(self, reports: Sequence[Report], given_back: Sequence[GivenBack], stored: Stored) -> None:
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
