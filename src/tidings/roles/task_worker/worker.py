"""One task worker: keeps its slots full of running handlers, and stores what came of each under the fence of its claim.

A fence that was lost meanwhile is somebody else's: the result changes nothing. A handler that is out of time has
failed, whether or not it can be stopped: a coroutine is cancelled, a thread keeps its slot until it returns by itself.
"""

import asyncio
import datetime
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tidings.db.engine import Engine
from tidings.decisions.claiming import SECONDS_OF_A_TASK, claim_ahead
from tidings.decisions.finishing import Failed, Finish, finish
from tidings.errors import TidingsError
from tidings.model.task import TaskStatus
from tidings.roles.task_worker.claiming import Claimer
from tidings.roles.task_worker.finishing import Finisher
from tidings.roles.task_worker.heartbeat import Heartbeat
from tidings.roles.task_worker.operations import ClaimedTask, Fence
from tidings.roles.task_worker.running import Ran, run_async, run_plain
from tidings.roles.task_worker.threads import Threads
from tidings.tasks.handlers import Handler, Handlers, Terms
from tidings.tasks.signals import TaskContext
from tidings.telemetry.bus import is_heard, tell
from tidings.telemetry.notices import (
    TaskClaimed,
    TaskFailed,
    TaskOverdue,
    TaskRetryScheduled,
    TasksClaimed,
    TaskSucceeded,
)

BATCH = 500
# With more than this many results unheard nothing new is claimed: memory is bounded, and what is done can be stored.
MOST_UNHEARD = 1000
SECONDS_TO_STORE = 5.0
SECONDS_BETWEEN_BEATS = 30.0
BEATS_BEFORE_RESCUE = 5
_LONGEST_WAIT = 0.2
_GATHERING = 0.005
STOPPED = "The worker was stopped before the handler ended"


@dataclass(frozen=True)
class TaskLimits:
    """`slots` handlers at once, `threads` of them plain functions; `grace` seconds to end when all must stop.

    `terms` are those of types that say nothing themselves.
    """

    slots: int
    threads: int
    grace: float
    terms: Terms


@dataclass(eq=False, slots=True)
class Run:
    """One handler at work; `is_told` when its outcome was recorded, be it at its end or before."""

    task: ClaimedTask
    handler: Handler
    terms: Terms
    began: float
    deadline: float
    work: "asyncio.Future[Ran]"
    is_told: bool = False


class TaskWorker:
    """`engine` is one of the role task_worker, or of another with the same rights on tasks, with room for two sessions.

    HandlerInvalid if the terms of a handler do not go together.
    """

    def __init__(self, engine: Engine, handlers: Handlers, worker_id: str, limits: TaskLimits) -> None:
        self._handlers = handlers
        self._worker_id = worker_id
        self._limits = limits
        self._terms = {handler.biz_type: handler.terms(limits.terms) for handler in handlers}
        self._freed = asyncio.Event()
        self._claimer = Claimer(engine, worker_id)
        self._finisher = Finisher(engine, worker_id, self._settled)
        visibility = min((terms.visibility_timeout for terms in self._terms.values()), default=SECONDS_BETWEEN_BEATS)
        beats = min(visibility / BEATS_BEFORE_RESCUE, SECONDS_BETWEEN_BEATS)
        self._heartbeat = Heartbeat(engine, self._alive, beats)
        self._threads: Threads[Ran] = Threads(limits.threads)
        self._waiting: dict[str, deque[ClaimedTask]] = defaultdict(deque)
        self._running: set[Run] = set()
        self._in_flight: Counter[str] = Counter()
        self._pace: dict[str, float] = {}
        # One for all runs: a timer for each would cost as much as a quick handler.
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = float("inf")
        # Also read by the heartbeat's thread: what is ours, by id and version, and until when it may be called alive.
        self._held: dict[tuple[int, int], tuple[ClaimedTask, float]] = {}

    @property
    def in_flight(self) -> int:
        return len(self._running)

    @property
    def lost_fences(self) -> int:
        return self._finisher.lost

    async def step(self) -> bool:
        """Fills the free slots, or waits a while for one. False if there was room and nothing due."""
        self._finisher.start()
        if not self._rooms():
            await self._until_freed()
            return bool(self._terms)
        rooms = await self._gathered_rooms()
        claim = await self._claimer.claim(rooms, min(sum(rooms.values()), self._room, BATCH))
        if claim.tasks or claim.lost:
            tell(TasksClaimed(self._worker_id, len(claim.tasks), claim.lost))
        if claim.tasks:
            self._take(claim.tasks)
        return bool(claim.tasks or claim.lost)

    async def look(self) -> bool:
        """Whether a step would find something, by one cheap question."""
        return await self._claimer.is_anything_due([*self._terms])

    async def close(self) -> None:
        """What was not begun is given back, what is under way is waited for; what does not end by then has failed."""
        for queue in self._waiting.values():
            for task in queue:
                self._finisher.give_back(task, "stopping")
        self._waiting.clear()
        if works := [run.work for run in self._running]:
            await asyncio.wait(works, timeout=self._limits.grace)
            # Those that ended have callbacks to come.
            await asyncio.sleep(0)
        for run in [*self._running]:
            self._tell(run, Ran(Failed(STOPPED)))
            run.work.cancel()
        self._unset_alarm()
        await self._finisher.close(SECONDS_TO_STORE)
        with suppress(TidingsError, TimeoutError):
            await asyncio.wait_for(self._claimer.settle(), SECONDS_TO_STORE)
        await self._heartbeat.close()

    @property
    def _capacity(self) -> int:
        """How many may be ours in all: those that run, and what quick handlers will have run in a moment."""
        return self._limits.slots + max(map(self._ahead, self._terms), default=0)

    @property
    def _room(self) -> int:
        if self._finisher.unheard >= MOST_UNHEARD:
            return 0
        return self._capacity - len(self._running) - sum(map(len, self._waiting.values()))

    def _ahead(self, biz_type: str) -> int:
        return claim_ahead(self._terms[biz_type].concurrency, self._pace.get(biz_type, SECONDS_OF_A_TASK))

    def _rooms(self) -> Mapping[str, int]:
        """How many more of each type may be claimed; nothing where there is no room."""
        if self._room <= 0:
            return {}
        found: dict[str, int] = {}
        for biz_type, terms in self._terms.items():
            free = terms.concurrency - self._in_flight[biz_type]
            if not self._handlers[biz_type].is_async:
                free = min(free, self._threads.free)
            room = free + self._ahead(biz_type) - len(self._waiting.get(biz_type, ()))
            if room > 0:
                found[biz_type] = room
        return found

    async def _until_freed(self) -> None:
        """No longer than a moment, and nothing is claimed after it in the same step: it may be time to stop."""
        self._freed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._freed.wait(), _LONGEST_WAIT)

    async def _gathered_rooms(self) -> Mapping[str, int]:
        """A few at once rather than one by one, but without keeping a free slot waiting for long."""
        if self._running and self._room < self._capacity // 4:
            await asyncio.sleep(_GATHERING)
        return self._rooms()

    def _take(self, tasks: Sequence[ClaimedTask]) -> None:
        now = time.monotonic()
        for task in tasks:
            # Until it begins it may wait for others, but not for ever.
            self._hold(task, now + self._terms[task.biz_type].visibility_timeout)
            self._waiting[task.biz_type].append(task)
            if is_heard(TaskClaimed):
                tell(TaskClaimed(*self._about(task)))
        self._heartbeat.start()
        self._fill()

    def _fill(self) -> None:
        for biz_type in [*self._waiting]:
            queue = self._waiting[biz_type]
            while queue and self._may_start(biz_type):
                self._start(queue.popleft())
            if not queue:
                del self._waiting[biz_type]

    def _may_start(self, biz_type: str) -> bool:
        if len(self._running) >= self._limits.slots or self._in_flight[biz_type] >= self._terms[biz_type].concurrency:
            return False
        return self._handlers[biz_type].is_async or self._threads.free > 0

    def _start(self, task: ClaimedTask) -> None:
        handler, terms = self._handlers[task.biz_type], self._terms[task.biz_type]
        context = _context(task, terms.timeout) if handler.takes_context else None
        work: asyncio.Future[Ran]
        if handler.is_async:
            work = asyncio.create_task(run_async(handler, task, context))
        else:
            work = self._threads.run(partial(run_plain, handler, task, context))
        began = time.monotonic()
        run = Run(task, handler, terms, began, began + terms.timeout, work)
        self._running.add(run)
        self._in_flight[task.biz_type] += 1
        self._hold(task, run.deadline)
        if run.deadline < self._alarm_at:
            self._set_alarm(run.deadline)
        work.add_done_callback(partial(self._ended, run))

    def _set_alarm(self, moment: float) -> None:
        self._unset_alarm()
        self._alarm_at = moment
        self._alarm = asyncio.get_running_loop().call_later(moment - time.monotonic(), self._look_at_the_clock)

    def _unset_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_at = None, float("inf")

    def _look_at_the_clock(self) -> None:
        """Ends those that are out of time; the alarm is set for the next one."""
        self._unset_alarm()
        now = time.monotonic()
        for run in [one for one in self._running if one.deadline <= now and not one.is_told]:
            self._out_of_time(run)
        if left := [one.deadline for one in self._running if not one.is_told]:
            self._set_alarm(min(left))

    def _out_of_time(self, run: Run) -> None:
        self._tell(run, Ran(Failed(f"The handler did not end within {run.terms.timeout:g} s")))
        if run.handler.is_async:
            run.work.cancel()
        else:
            tell(TaskOverdue(*self._about(run.task), run.terms.timeout))

    def _ended(self, run: Run, work: "asyncio.Future[Ran]") -> None:
        self._running.discard(run)
        biz_type = run.task.biz_type
        self._in_flight[biz_type] -= 1
        pace = self._pace.get(biz_type, SECONDS_OF_A_TASK)
        self._pace[biz_type] = 0.8 * pace + 0.2 * (time.monotonic() - run.began)
        if not run.is_told:
            # Cancelled by nobody of us, before it had begun.
            self._tell(run, Ran(Failed(STOPPED)) if work.cancelled() else work.result())
        if self._waiting:
            self._fill()
        self._freed.set()

    def _tell(self, run: Run, ran: Ran) -> None:
        """Once for each run, whatever comes of it later."""
        if run.is_told:
            return
        run.is_told = True
        # Held until it is stored: a database that is away must not make others run it again.
        self._hold(run.task, float("inf"))
        end = finish(run.task.tried, ran.result, run.terms.backoff)
        milliseconds = round(1000 * (time.monotonic() - run.began))
        self._announce(run, end, milliseconds, ran.trace)
        self._finisher.finish(run.task, end, milliseconds)

    def _announce(self, run: Run, end: Finish, milliseconds: int, trace: str) -> None:
        if end.status is TaskStatus.SUCCESS and not is_heard(TaskSucceeded):
            return
        about = self._about(run.task)
        if end.status is TaskStatus.SUCCESS:
            tell(TaskSucceeded(*about, milliseconds))
        elif end.status is TaskStatus.FAIL_RETRY:
            tell(TaskRetryScheduled(*about, milliseconds, end.result_msg, round(end.delay, 3), trace))
        else:
            tell(TaskFailed(*about, milliseconds, end.result_msg, trace))

    def _about(self, task: ClaimedTask) -> tuple[str, int, str, str, int]:
        return task.correlation_id, task.id, task.biz_type, self._worker_id, task.retry_count + 1

    def _hold(self, task: ClaimedTask, until: float) -> None:
        self._held[task.id, task.version] = task, until

    def _settled(self, tasks: Sequence[ClaimedTask]) -> None:
        for task in tasks:
            self._held.pop((task.id, task.version), None)
        self._freed.set()

    def _alive(self) -> list[Fence]:
        """What is ours and still has time. Called by the heartbeat's thread: copied in one piece."""
        now = time.monotonic()
        return [task.fence for task, until in [*self._held.values()] if until > now]


def _context(task: ClaimedTask, timeout: float) -> TaskContext:
    deadline = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=timeout)
    attempt = task.retry_count + 1
    return TaskContext(task.id, attempt, task.biz_type, task.biz_key, task.correlation_id, deadline, task.version)
