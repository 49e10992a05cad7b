"""The handlers at work. A hand runs one task after the other: an event-loop task for each would cost more than a quick
handler does.

A handler that is out of time has failed, whether or not it can be stopped: a coroutine is cancelled, a thread keeps its
slot until it returns by itself.
"""

import asyncio
import datetime
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tidings.decisions.claiming import SECONDS_OF_A_TASK
from tidings.decisions.finishing import Failed
from tidings.roles.task_worker.operations import ClaimedTask
from tidings.roles.task_worker.running import Ran, run_async, run_plain
from tidings.roles.task_worker.threads import Threads
from tidings.tasks.handlers import Handler, Handlers, Terms
from tidings.tasks.signals import TaskContext

STOPPED = "The worker was stopped before the handler ended"
Work = asyncio.Future[Ran] | asyncio.Task[None]
"""A thread's future, or the hand."""
# Then others have their turn: the event loop has more to do than handlers that never wait.
_SECONDS_OF_A_TURN = 0.0005


@dataclass(eq=False, slots=True)
class Run:
    """One handler at work; `is_told` when its outcome was recorded, be it at its end or before."""

    task: ClaimedTask
    terms: Terms
    began: float
    deadline: float
    work: Work
    is_told: bool = False


class Owner(Protocol):
    """Whose tasks they are."""

    def begun(self, run: Run) -> None:
        """Its handler is called next."""

    def came_to(self, run: Run, ran: Ran) -> None:
        """Once for each run, at its end or when it is out of time."""

    def cannot_stop(self, run: Run) -> None:
        """It is out of time and goes on in its thread."""

    def freed(self) -> None:
        """There may be room for more."""


class Hands:
    """`slots` handlers at once, `threads` of them plain functions, and of each type as many as its terms say."""

    def __init__(self, owner: Owner, handlers: Handlers, terms: Mapping[str, Terms], slots: int, threads: int) -> None:
        self._owner, self._handlers, self._terms, self._slots = owner, handlers, terms, slots
        self._threads: Threads[Ran] = Threads(threads)
        self._waiting: dict[str, deque[ClaimedTask]] = defaultdict(deque)
        self._running: set[Run] = set()
        self._taken: Counter[str] = Counter()
        self._turn_ends = 0.0
        self._pace: dict[str, float] = {}
        # One for all runs: a timer for each would cost as much as a quick handler.
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = float("inf")

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    def free(self, biz_type: str) -> int:
        """How many more of this type could run at once; those that wait already have a claim on it."""
        free = self._terms[biz_type].concurrency - self._taken[biz_type]
        if not self._handlers[biz_type].is_async:
            free = min(free, self._threads.free)
        return free - len(self._waiting.get(biz_type, ()))

    def seconds_each(self, biz_type: str) -> float:
        """What its handler takes by now."""
        return self._pace.get(biz_type, SECONDS_OF_A_TASK)

    def take(self, tasks: Sequence[ClaimedTask]) -> None:
        for task in tasks:
            self._waiting[task.biz_type].append(task)
        self._fill()

    def drop(self) -> list[ClaimedTask]:
        """Those that were not begun, and now never will be."""
        dropped = [task for queue in self._waiting.values() for task in queue]
        self._waiting.clear()
        return dropped

    async def finish(self, grace: float) -> None:
        """What is under way is waited for; what does not end by then has failed."""
        if works := {run.work for run in self._running}:
            await asyncio.wait(works, timeout=grace)
            # Those that ended have callbacks to come.
            await asyncio.sleep(0)
        for run in [*self._running]:
            self._tell(run, Ran(Failed(STOPPED)))
            run.work.cancel()
        self._unset_alarm()

    def _fill(self) -> None:
        """One hand is enough for tasks that never wait. While it does not get through with them, in each turn of the
        event loop as many more as there are, and one."""
        engaged = 0
        for biz_type in [*self._waiting]:
            hands = min(len(self._waiting[biz_type]), self._places(biz_type), self._taken[biz_type] + 1)
            for _ in range(hands):
                self._engage(self._handlers[biz_type])
            engaged += hands
        if engaged:
            self._turn_ends = time.monotonic() + _SECONDS_OF_A_TURN
            asyncio.get_running_loop().call_soon(self._fill)

    def _places(self, biz_type: str) -> int:
        """A hand that has no task yet has a place, too."""
        places = min(self._slots - self._taken.total(), self._terms[biz_type].concurrency - self._taken[biz_type])
        return places if self._handlers[biz_type].is_async else min(places, self._threads.free)

    def _engage(self, handler: Handler) -> None:
        self._taken[handler.biz_type] += 1
        if handler.is_async:
            hand = asyncio.create_task(self._work_through(handler))
            hand.add_done_callback(partial(self._disengage, handler.biz_type))
        else:
            self._run_in_a_thread(handler)

    def _disengage(self, biz_type: str, hand: "asyncio.Future[Any]") -> None:
        self._taken[biz_type] -= 1
        if self._waiting:
            self._fill()
        self._owner.freed()
        if not hand.cancelled():
            hand.result()

    async def _work_through(self, handler: Handler) -> None:
        """As long as nothing of one task can be felt by the next: not what it left in the context, no cancelling."""
        hand, clean = asyncio.current_task(), copy_context()
        assert hand is not None
        while task := self._next(handler.biz_type):
            run = self._begin(task, hand)
            self._end(run, await run_async(handler, task, self._context(handler, task)))
            if time.monotonic() > self._turn_ends or hand.cancelling() or _left_something(clean):
                return

    def _run_in_a_thread(self, handler: Handler) -> None:
        task = self._next(handler.biz_type)
        assert task is not None
        work = self._threads.run(partial(run_plain, handler, task, self._context(handler, task)))
        work.add_done_callback(partial(self._thread_ended, self._begin(task, work)))

    def _thread_ended(self, run: Run, work: "asyncio.Future[Ran]") -> None:
        self._end(run, Ran(Failed(STOPPED)) if work.cancelled() else work.result())
        self._disengage(run.task.biz_type, work)

    def _next(self, biz_type: str) -> ClaimedTask | None:
        queue = self._waiting.get(biz_type)
        if not queue:
            return None
        task = queue.popleft()
        if not queue:
            del self._waiting[biz_type]
        return task

    def _context(self, handler: Handler, task: ClaimedTask) -> TaskContext | None:
        if not handler.takes_context:
            return None
        timeout = datetime.timedelta(seconds=self._terms[task.biz_type].timeout)
        deadline = datetime.datetime.now(datetime.UTC) + timeout
        attempt = task.retry_count + 1
        return TaskContext(task.id, attempt, task.biz_type, task.biz_key, task.correlation_id, deadline, task.version)

    def _begin(self, task: ClaimedTask, work: Work) -> Run:
        began, terms = time.monotonic(), self._terms[task.biz_type]
        run = Run(task, terms, began, began + terms.timeout, work)
        self._running.add(run)
        if run.deadline < self._alarm_at:
            self._set_alarm(run.deadline)
        self._owner.begun(run)
        return run

    def _end(self, run: Run, ran: Ran) -> None:
        self._running.discard(run)
        biz_type = run.task.biz_type
        self._pace[biz_type] = 0.8 * self.seconds_each(biz_type) + 0.2 * (time.monotonic() - run.began)
        self._tell(run, ran)

    def _tell(self, run: Run, ran: Ran) -> None:
        """Once for each run, whatever comes of it later."""
        if not run.is_told:
            run.is_told = True
            self._owner.came_to(run, ran)

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
            self._tell(run, Ran(Failed(f"The handler did not end within {run.terms.timeout:g} s")))
            if isinstance(run.work, asyncio.Task):
                run.work.cancel()
            else:
                self._owner.cannot_stop(run)
        if left := [one.deadline for one in self._running if not one.is_told]:
            self._set_alarm(min(left))


def _left_something(clean: Context) -> bool:
    """Whether a handler has set variables of the context; compared by identity first, so mostly for nothing."""
    try:
        return copy_context() != clean
    except Exception:  # values that can't be compared
        return True
