"""One delivery as it could go: its saga, the job of its present attempt, and what two workers think they hold of it.

The product's own pure decisions say how it goes on; what its statements do, and what guards them, is said here again.
Time does not exist: a lease may expire at any moment, so that a zombie is simply a worker that acts late.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tests.model.exploring import Move
from tidings.decisions.advancing import (
    Advance,
    Buried,
    Completed,
    JobResult,
    Retried,
    RetryPolicy,
    advance,
    is_exhausted,
)
from tidings.decisions.leasing import is_poisoned
from tidings.decisions.retrying import Backoff
from tidings.model.job import JobStatus
from tidings.model.saga import SagaStatus

WORKERS = (0, 1)
BACKOFF = Backoff(base=1, longest=8, jitter=0)
ENDS = (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED)
FINISHED = (JobStatus.COMPLETED, JobStatus.FAILED)
ACTIVE = (JobStatus.PENDING, JobStatus.LEASED)


class Phase(StrEnum):
    """How far a worker has come with a job that it leased."""

    UNSENT = "unsent"
    WENT_WELL = "went well"
    FAILED = "failed"


class Hold(NamedTuple):
    """`is_last`: no other lease, reset or give-back has come since, so that its token is the job's.

    `is_old`: of an earlier attempt, which is finished.
    """

    phase: Phase
    is_last: bool = True
    is_old: bool = False


class Job(NamedTuple):
    """`is_stale`: its lease has run out, and nobody has ended it yet."""

    status: JobStatus = JobStatus.PENDING
    resets: int = 0
    is_stale: bool = False


class Delivery(NamedTuple):
    """`sent`: requests of this attempt. `heard`: the endpoint has said yes. `in_doubt`: nobody knew what it said."""

    status: SagaStatus = SagaStatus.PENDING
    attempts: int = 0
    generation: int = 0
    limit: int = 3
    job: Job | None = None
    sent: int = 0
    heard: bool = False
    in_doubt: bool = False
    holds: tuple[Hold | None, ...] = (None, None)


@dataclass(frozen=True)
class Rules:
    """The decisions, and the guards of the statements; tests replace one of them by a wrong one."""

    advance: Callable[[JobResult, RetryPolicy], Advance] = advance
    is_exhausted: Callable[[int, RetryPolicy], bool] = is_exhausted
    is_poisoned: Callable[[int, int], bool] = is_poisoned
    report_checks_token: bool = True
    report_checks_status: bool = True
    give_back_checks_token: bool = True
    lease_makes_token: bool = True
    reset_makes_token: bool = True
    cleaner_locks: bool = True
    start_marks: bool = True


@dataclass(frozen=True)
class World:
    """What can go wrong in it, and how often something is done by people."""

    rules: Rules = field(default_factory=Rules)
    max_lease_resets: int = 1
    requeues: int = 1
    lowers_limit: bool = False
    crashes: bool = True
    expires: bool = True
    answers_get_lost: bool = True

    def moves(self, now: Delivery) -> Iterator[Move[Delivery]]:
        yield from self._orchestrator(now)
        for worker in WORKERS:
            yield from self._worker(now, worker)
        yield from self._cleaner(now)
        yield from self._people(now)

    def _orchestrator(self, now: Delivery) -> Iterator[Move[Delivery]]:
        policy = RetryPolicy(now.limit, BACKOFF)
        if now.status in (SagaStatus.PENDING, SagaStatus.PENDING_RETRY):
            if self.rules.is_exhausted(now.attempts, policy):
                yield Move("bury exhausted", now._replace(status=SagaStatus.DEAD_LETTERED))
            else:
                status = SagaStatus.IN_PROGRESS if self.rules.start_marks else now.status
                yield Move("start", now._replace(status=status, job=Job(), sent=0, holds=_aged(now.holds)))
        if now.job and now.job.status in FINISHED:
            yield Move("take in", self._taken_in(now, now.job, policy))

    def _taken_in(self, now: Delivery, job: Job, policy: RetryPolicy) -> Delivery:
        result = JobResult(1, 1, 1, job.status, "timeout", None, now.status, now.attempts)
        match self.rules.advance(result, policy):
            case Completed():
                status, counted = SagaStatus.COMPLETED, 1
            case Retried():
                status, counted = SagaStatus.PENDING_RETRY, 1
            case Buried():
                status, counted = SagaStatus.DEAD_LETTERED, 1
            case _:
                status, counted = now.status, 0
        return now._replace(status=status, attempts=now.attempts + counted, job=None, holds=_aged(now.holds))

    def _worker(self, now: Delivery, worker: int) -> Iterator[Move[Delivery]]:
        hold = now.holds[worker]
        if hold is None:
            if now.job and now.job.status is JobStatus.PENDING:
                holds = _outdated(now.holds) if self.rules.lease_makes_token else now.holds
                leased = now._replace(job=now.job._replace(status=JobStatus.LEASED), holds=holds)
                yield Move(f"lease {worker}", _held(leased, worker, Hold(Phase.UNSENT)))
            return
        if self.crashes:
            yield Move(f"crash {worker}", _held(now, worker, None), is_fault=True)
        if hold.phase is Phase.UNSENT:
            yield from self._send(now, worker, hold)
            yield Move(f"give back {worker}", self._given_back(now, worker, hold))
        else:
            reported = self._reported(now, hold)
            yield Move(f"report {worker}", _held(reported, worker, None))
            # Stored, but the answer was lost: it will be reported once more.
            yield Move(f"report unheard {worker}", reported, is_fault=True)

    def _send(self, now: Delivery, worker: int, hold: Hold) -> Iterator[Move[Delivery]]:
        sent = now if hold.is_old else now._replace(sent=now.sent + 1)
        well, failed = hold._replace(phase=Phase.WENT_WELL), hold._replace(phase=Phase.FAILED)
        yield Move(f"yes {worker}", _held(sent._replace(heard=True), worker, well))
        yield Move(f"no {worker}", _held(sent, worker, failed), is_fault=True)
        if self.answers_get_lost:
            unheard = sent._replace(heard=True, in_doubt=True)
            yield Move(f"yes, unheard {worker}", _held(unheard, worker, failed), is_fault=True)

    def _reported(self, now: Delivery, hold: Hold) -> Delivery:
        rules, job = self.rules, now.job
        if job is None or hold.is_old:
            return now
        if rules.report_checks_token and not hold.is_last:
            return now
        if rules.report_checks_status and job.status is not JobStatus.LEASED:
            return now
        status = JobStatus.COMPLETED if hold.phase is Phase.WENT_WELL else JobStatus.FAILED
        # Whoever saw a stale lease before, and did not lock it, may still act on what it saw.
        return now._replace(job=job._replace(status=status, is_stale=job.is_stale and not rules.cleaner_locks))

    def _given_back(self, now: Delivery, worker: int, hold: Hold) -> Delivery:
        is_ours = hold.is_last or not self.rules.give_back_checks_token
        given = now
        if now.job and now.job.status is JobStatus.LEASED and is_ours and not hold.is_old:
            given = now._replace(job=now.job._replace(status=JobStatus.PENDING, is_stale=False))
            given = given._replace(holds=_outdated(given.holds))
        return _held(given, worker, None)

    def _cleaner(self, now: Delivery) -> Iterator[Move[Delivery]]:
        job = now.job
        if job is None:
            return
        if job.status is JobStatus.LEASED and not job.is_stale:
            nobody_holds_it = not any(hold and hold.is_last and not hold.is_old for hold in now.holds)
            if self.expires or nobody_holds_it:
                yield Move("expire", now._replace(job=job._replace(is_stale=True)), is_fault=not nobody_holds_it)
        if job.is_stale and (job.status is JobStatus.LEASED or not self.rules.cleaner_locks):
            is_over = self.rules.is_poisoned(job.resets, self.max_lease_resets)
            ended = Job(JobStatus.FAILED if is_over else JobStatus.PENDING, min(job.resets + 1, 5))
            holds = _outdated(now.holds) if self.rules.reset_makes_token else now.holds
            yield Move("fail stale" if is_over else "reset", now._replace(job=ended, in_doubt=True, holds=holds))

    def _people(self, now: Delivery) -> Iterator[Move[Delivery]]:
        if now.status in ENDS and now.generation < self.requeues:
            # A job of the old generation that is still held is nobody's: its saga has ended.
            yield Move("requeue", Delivery(generation=now.generation + 1, limit=now.limit), is_fault=True)
        if self.lowers_limit and now.limit > 1 and now.status not in ENDS:
            yield Move("lower limit", now._replace(limit=now.limit - 1), is_fault=True)


def _held(now: Delivery, worker: int, hold: Hold | None) -> Delivery:
    return now._replace(holds=tuple(hold if one == worker else now.holds[one] for one in WORKERS))


def _outdated(holds: tuple[Hold | None, ...]) -> tuple[Hold | None, ...]:
    """The job has another token now."""
    return tuple(hold and hold._replace(is_last=False) for hold in holds)


def _aged(holds: tuple[Hold | None, ...]) -> tuple[Hold | None, ...]:
    """The job that they were about is finished and taken in."""
    return tuple(hold and hold._replace(is_last=False, is_old=True) for hold in holds)
