"""One worker: keeps its slots full of requests, and reports what came back under the token of each lease.

No transaction is open during a request. A lease that was lost meanwhile is somebody else's: the report changes nothing.
"""

import asyncio
import datetime
import secrets
import time
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from tidings.courier import Courier, Result
from tidings.db.engine import Engine
from tidings.decisions.leasing import (
    LONGEST_DELAY,
    give_back_delay,
    has_time,
    slots_for_the_slow,
    waiting_room,
    width_of_the_unknown,
)
from tidings.errors import SecretsUnusable
from tidings.model.job import JobStatus
from tidings.roles.worker.endpoints import Endpoint, open_endpoint, request_of
from tidings.roles.worker.operations import EndpointRow, LeasedJob, Report, WorkerOperations
from tidings.roles.worker.reporting import Reporter
from tidings.telemetry.bus import is_heard, tell
from tidings.telemetry.notices import (
    DeliveryCrashed,
    DeliveryFailed,
    DeliverySucceeded,
    EndpointUnusable,
    JobLeased,
    JobsLeased,
)
from tidings.vault import Vault

BATCH = 200
EPOCH = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
SLACK = datetime.timedelta(seconds=5)
SECONDS_BETWEEN_SWEEPS = 1.0
SECONDS_UNTIL_ALLOWED = 30.0
# What a request is thought to take while nobody knows. Little: who is told to come back later waits for nothing where
# endpoints are quick, and those that hang are known by the requests under way.
SECONDS_OF_A_REQUEST = 0.1
# What takes longer is slow, and has slots of its own.
SECONDS_OF_A_SLOW_ONE = 1.0
SECONDS_UNTIL_ROOM = 5.0
# With more than this many reports unheard nothing new is leased: memory is bounded, and what is sent can be reported.
MOST_UNHEARD = 1000
_LONGEST_WAIT = 0.2
_GATHERING = 0.005
# A machine that slept was away too, and the server's clock went on.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@dataclass(frozen=True)
class WorkerLimits:
    """`margin` is what must be left of a lease after a request's deadline, for the report."""

    lease_seconds: float
    slots: int
    max_in_flight: int
    timeout: float
    margin: float
    claim_hint: bool = True

    @property
    def longest_timeout(self) -> float:
        """A longer one would never fit in a lease, with as much room again between claim and start."""
        return self.lease_seconds - 2 * self.margin

    def in_flight_of(self, row: EndpointRow) -> int:
        """Whatever a subscription wishes, it leaves room for others."""
        return min(row.max_in_flight or self.max_in_flight, max(1, self.slots // 4))


class Waiting(NamedTuple):
    """A leased job that has not been sent yet; `until` is the end of its lease by this machine's own clock."""

    job: LeasedJob
    endpoint: Endpoint
    until: float


class Worker:
    """`engine` is one of the role job_worker, with room for two sessions. `on_reported`: reports were committed."""

    def __init__(
        self,
        engine: Engine,
        courier: Courier,
        vault: Vault,
        worker_id: str,
        limits: WorkerLimits,
        on_reported: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine = engine
        self._courier = courier
        self._vault = vault
        self._worker_id = worker_id
        self._limits = limits
        self._freed = asyncio.Event()
        self._on_reported = on_reported
        self._reporter = Reporter(engine, worker_id, self._heard)
        self._installation_id = ""
        self._waiting: dict[int, deque[Waiting]] = defaultdict(deque)
        # When each began, the oldest first.
        self._in_flight: dict[int, dict[asyncio.Task[None], float]] = defaultdict(dict)
        self._pace: dict[int, float] = {}
        self._served_until: dict[int, float] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._since = EPOCH
        self._swept_at = float("-inf")

    @property
    def in_flight(self) -> int:
        return len(self._sending)

    @property
    def lost_leases(self) -> int:
        return self._reporter.lost

    async def step(self) -> bool:
        """Fills the free slots, or waits a while for one. False if there was room and no work."""
        self._reporter.start()
        self._give_back_overdue()
        for subscription in [*self._waiting]:
            self._relieve(subscription)
        if not self._free:
            await self._until_freed()
            return True
        if not self._installation_id:
            self._installation_id = await WorkerOperations.step(self._engine, WorkerOperations.installation_id)
        leased = await self._lease(min(await self._gathered_slots(), BATCH))
        for waiting in leased:
            self._waiting[waiting.job.subscription_id].append(waiting)
        for subscription in {waiting.job.subscription_id for waiting in leased}:
            self._fill(subscription)
            self._relieve(subscription)
        return bool(leased)

    async def look(self) -> bool:
        """Whether a step would find something: jobs to lease, by one statement, or some that have waited too long."""
        self._reporter.start()
        return bool(self._waiting) or await WorkerOperations.alone(self._engine, WorkerOperations.has_pending)

    async def close(self) -> None:
        """What was not sent is given back, what is under way is waited for and reported, all before leases end."""
        deadline = _now() + self._limits.lease_seconds
        for waiting in [one for queue in self._waiting.values() for one in queue]:
            self._reporter.give_back(waiting.job, "stopping")
        self._waiting.clear()
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=self._limits.lease_seconds)
            for task in late:
                task.cancel()
        await self._reporter.close(max(0.0, deadline - _now()))

    @property
    def _free(self) -> int:
        """Requests that take long have slots of their own beside the others: a hundred that hang slow nobody down."""
        if self._reporter.unheard >= MOST_UNHEARD:
            return 0
        slots = self._limits.slots
        apart = min(self._slow_under_way(), slots_for_the_slow(slots))
        return max(0, slots - len(self._sending) + apart)

    def _heard(self) -> None:
        self._freed.set()
        self._on_reported()

    async def _until_freed(self) -> None:
        """No longer than a moment, and nothing is leased after it in the same step: it may be time to stop."""
        self._freed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._freed.wait(), _LONGEST_WAIT)

    async def _gathered_slots(self) -> int:
        """A few at once rather than one by one, but without keeping a free slot waiting."""
        if self._free < min(BATCH, self._limits.slots) // 4 and self._sending:
            await asyncio.sleep(_GATHERING)
        return self._free

    async def _lease(self, most: int) -> list[Waiting]:
        if time.monotonic() - self._swept_at >= SECONDS_BETWEEN_SWEEPS or not self._limits.claim_hint:
            self._since, self._swept_at = EPOCH, time.monotonic()
        # Taken before the server sets the lease, so that by our clock it never ends later than by the server's.
        began = _now()
        token = secrets.randbits(63)

        async def lease(operations: WorkerOperations) -> tuple[list[LeasedJob], list[EndpointRow]]:
            ready = await operations.pending_jobs(self._since, most)
            if not ready:
                return [], []
            await operations.lease_jobs([*ready], self._limits.lease_seconds, self._worker_id, token)
            self._since = max(self._since, max(ready.values()) - SLACK)
            jobs = await operations.leased_jobs([*ready], token)
            return jobs, await operations.endpoints({job.subscription_id for job in jobs})

        jobs, rows = await WorkerOperations.step(self._engine, lease)
        self._announce_leased(jobs)
        return self._sendable(jobs, rows, began + self._limits.lease_seconds)

    def _announce_leased(self, jobs: list[LeasedJob]) -> None:
        if jobs:
            tell(JobsLeased(self._worker_id, len(jobs)))
        for job in jobs if is_heard(JobLeased) else ():
            tell(JobLeased(*self._about(job), job.attempt_no))

    def _sendable(self, jobs: list[LeasedJob], rows: list[EndpointRow], until: float) -> list[Waiting]:
        """The others are given back; they are looked at again later."""
        now = _server_time(jobs[0].lease_until, until) if jobs else 0.0
        endpoints = {row.id: self._opened(row, now) for row in rows}
        found: list[Waiting] = []
        for job in jobs:
            endpoint = endpoints.get(job.subscription_id)
            if endpoint is None or not endpoint.may_be_sent_to:
                self._reporter.give_back(job, "not allowed", SECONDS_UNTIL_ALLOWED)
            else:
                found.append(Waiting(job, endpoint, until))
        return found

    def _opened(self, row: EndpointRow, now: float) -> Endpoint | None:
        try:
            timeout = min(row.timeout_seconds or self._limits.timeout, self._limits.longest_timeout)
            return open_endpoint(row, self._vault, timeout, self._limits.in_flight_of(row), now)
        except SecretsUnusable as error:
            tell(EndpointUnusable(row.id, error.what))
            return None

    def _fill(self, subscription: int) -> None:
        queue = self._waiting[subscription]
        while queue and self._may_start(queue[0]):
            self._start(queue.popleft())
        if not queue:
            del self._waiting[subscription]

    def _may_start(self, waiting: Waiting) -> bool:
        """Those that hang have their own slots; those of which nobody knows yet whether they do leave some free."""
        subscription, slots = waiting.job.subscription_id, self._limits.slots
        width = waiting.endpoint.max_in_flight
        if subscription not in self._pace:
            width = width_of_the_unknown(width, slots, len(self._sending))
        if len(self._in_flight.get(subscription, ())) >= width:
            return False
        return not self._is_slow(subscription) or self._slow_under_way() < slots_for_the_slow(slots)

    def _is_slow(self, subscription: int) -> bool:
        return self._seconds_of_a_request(subscription) > SECONDS_OF_A_SLOW_ONE

    def _slow_under_way(self) -> int:
        return sum(len(tasks) for subscription, tasks in self._in_flight.items() if self._is_slow(subscription))

    def _relieve(self, subscription: int) -> None:
        """What a crowded subscription can't be sent soon goes back, so that others may send it or it waits unleased."""
        queue = self._waiting.get(subscription)
        if queue and not self._in_flight.get(subscription):
            # The slots for slow ones are taken by others.
            while queue:
                self._reporter.give_back(queue.popleft().job, "crowded", SECONDS_UNTIL_ROOM)
            del self._waiting[subscription]
        if not queue or len(queue) <= (width := queue[0].endpoint.max_in_flight):
            return
        spare = self._limits.slots - sum(map(len, self._waiting.values())) + len(queue)
        room = waiting_room(width, self._seconds_of_a_request(subscription), spare)
        now = time.monotonic()
        until = max(self._served_until.get(subscription, now), now + room.places * room.seconds_between)
        surplus = [queue.pop() for _ in range(len(queue) - room.places)]
        for waiting in reversed(surplus):
            until = min(until + room.seconds_between, now + LONGEST_DELAY)
            self._reporter.give_back(waiting.job, "crowded", give_back_delay(until - now))
        self._served_until[subscription] = until

    def _seconds_of_a_request(self, subscription: int) -> float:
        """By those that have ended, or as long as half of those under way have taken by now: one proves nothing."""
        pace = self._pace.get(subscription, SECONDS_OF_A_REQUEST)
        begun = self._in_flight.get(subscription)
        if not begun:
            return pace
        return max(pace, time.monotonic() - next(islice(begun.values(), len(begun) // 2, None)))

    def _give_back_overdue(self) -> None:
        """What waits behind slow requests goes back in time: a lease that ends unsent would count as an expiry."""
        for subscription, queue in [*self._waiting.items()]:
            while queue and not self._has_time(queue[0]):
                self._reporter.give_back(queue.popleft().job, "too late")
            if not queue:
                del self._waiting[subscription]

    def _has_time(self, waiting: Waiting) -> bool:
        return has_time(waiting.until - _now(), waiting.endpoint.timeout, self._limits.margin)

    def _start(self, waiting: Waiting) -> None:
        task = asyncio.create_task(self._send(waiting))
        self._in_flight[waiting.job.subscription_id][task] = time.monotonic()
        self._sending.add(task)
        task.add_done_callback(lambda done: self._ended(done, waiting.job))

    def _ended(self, task: asyncio.Task[None], job: LeasedJob) -> None:
        subscription = job.subscription_id
        self._sending.discard(task)
        del self._in_flight[subscription][task]
        if not self._in_flight[subscription]:
            del self._in_flight[subscription]
        if subscription in self._waiting:
            self._fill(subscription)
        self._freed.set()
        if not task.cancelled() and (error := task.exception()):
            tell(DeliveryCrashed(*self._about(job), f"{type(error).__name__}: {error}"))

    async def _send(self, waiting: Waiting) -> None:
        job = waiting.job
        if not self._has_time(waiting):
            self._reporter.give_back(job, "too late")
            return
        now = _server_time(job.lease_until, waiting.until)
        request = request_of(job, waiting.endpoint, self._installation_id, now)
        self._take_in(job, await self._courier.send(request))

    def _take_in(self, job: LeasedJob, result: Result) -> None:
        code = result.error_code
        status = JobStatus.COMPLETED if code is None else JobStatus.FAILED
        seconds = result.duration_ms / 1000
        # The first one counts alone: what was thought before it is no experience.
        pace = self._pace.get(job.subscription_id, seconds)
        self._pace[job.subscription_id] = 0.8 * pace + 0.2 * seconds
        answer = (result.retry_after, result.excerpt, result.duration_ms)
        self._reporter.report(Report(job, status, result.status, code, *answer))
        if code is None:
            if is_heard(DeliverySucceeded):
                tell(DeliverySucceeded(*self._about(job), result.status, result.duration_ms))
        else:
            tell(DeliveryFailed(*self._about(job), result.status, result.duration_ms, code))

    def _about(self, job: LeasedJob) -> tuple[str, int, int, int, str, str]:
        return job.correlation_id, job.event_id, job.saga_id, job.job_id, self._worker_id, str(job.lease_until)


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def _server_time(lease_until: datetime.datetime, until: float) -> float:
    """By the end of a lease, which is known in the server's time and in ours. What clock this machine shows is of no
    account; the server's is met to the length of the statement that took the lease."""
    return lease_until.timestamp() - (until - _now())
