"""One task worker: keeps its slots full of running handlers, and stores what came of each under the fence of its claim.

A fence that was lost meanwhile is somebody else's: the result changes nothing.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.decisions.claiming import claim_ahead
from tidings.decisions.finishing import Finish, finish
from tidings.errors import TidingsError
from tidings.model.task import TaskStatus
from tidings.roles.task_worker.claiming import Claimer
from tidings.roles.task_worker.finishing import Finisher
from tidings.roles.task_worker.hands import Hands, Run
from tidings.roles.task_worker.heartbeat import Heartbeat
from tidings.roles.task_worker.operations import ClaimedTask, Fence
from tidings.roles.task_worker.running import Ran
from tidings.tasks.handlers import Handlers, Terms
from tidings.telemetry.bus import is_heard, tell
from tidings.telemetry.notices import (
    TaskClaimed,
    TaskFailed,
    TaskOverdue,
    TaskRetryScheduled,
    TasksClaimed,
    TaskSucceeded,
)

BATCH = 2000
# With more than this many results unheard nothing new is claimed: memory is bounded, and what is done can be stored.
MOST_UNHEARD = 4000
SECONDS_TO_STORE = 5.0
SECONDS_BETWEEN_BEATS = 30.0
BEATS_BEFORE_RESCUE = 5
_LONGEST_WAIT = 0.2
_GATHERING = 0.005


@dataclass(frozen=True)
class TaskLimits:
    """`slots` handlers at once, `threads` of them plain functions; `grace` seconds to end when all must stop.

    `terms` are those of types that say nothing themselves.
    """

    slots: int
    threads: int
    grace: float
    terms: Terms


class TaskWorker:
    """`engine` is one of the role task_worker, or of another with the same rights on tasks, with room for two sessions.

    HandlerInvalid if the terms of a handler do not go together.
    """

    def __init__(self, engine: Engine, handlers: Handlers, worker_id: str, limits: TaskLimits) -> None:
        self._worker_id = worker_id
        self._limits = limits
        self._terms = {handler.biz_type: handler.terms(limits.terms) for handler in handlers}
        self._freed = asyncio.Event()
        self._claimer = Claimer(engine, worker_id)
        self._finisher = Finisher(engine, worker_id, self._settled)
        visibility = min((terms.visibility_timeout for terms in self._terms.values()), default=SECONDS_BETWEEN_BEATS)
        beats = min(visibility / BEATS_BEFORE_RESCUE, SECONDS_BETWEEN_BEATS)
        self._heartbeat = Heartbeat(engine, self._alive, beats)
        self._hands = Hands(self, handlers, self._terms, limits.slots, limits.threads)
        # Also read by the heartbeat's thread: what is ours, by id and version, and until when it may be called alive.
        self._held: dict[tuple[int, int], tuple[ClaimedTask, float]] = {}

    @property
    def in_flight(self) -> int:
        return self._hands.running

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
        for task in self._hands.drop():
            self._finisher.give_back(task, "stopping")
        await self._hands.finish(self._limits.grace)
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
        return self._capacity - self._hands.running - self._hands.waiting

    def _ahead(self, biz_type: str) -> int:
        return claim_ahead(self._terms[biz_type].concurrency, self._hands.seconds_each(biz_type))

    def _rooms(self) -> Mapping[str, int]:
        """How many more of each type may be claimed; nothing where there is no room."""
        if self._room <= 0:
            return {}
        rooms = {biz_type: self._hands.free(biz_type) + self._ahead(biz_type) for biz_type in self._terms}
        return {biz_type: room for biz_type, room in rooms.items() if room > 0}

    async def _until_freed(self) -> None:
        """No longer than a moment, and nothing is claimed after it in the same step: it may be time to stop."""
        self._freed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._freed.wait(), _LONGEST_WAIT)

    async def _gathered_rooms(self) -> Mapping[str, int]:
        """A few at once rather than one by one, but without keeping a free slot waiting for long."""
        if self._hands.running and self._room < self._capacity // 4:
            await asyncio.sleep(_GATHERING)
        return self._rooms()

    def _take(self, tasks: Sequence[ClaimedTask]) -> None:
        now = time.monotonic()
        for task in tasks:
            # Until it begins it may wait for others, but not for ever.
            self._hold(task, now + self._terms[task.biz_type].visibility_timeout)
            if is_heard(TaskClaimed):
                tell(TaskClaimed(*self._about(task)))
        self._heartbeat.start()
        self._hands.take(tasks)

    def _settled(self, tasks: Sequence[ClaimedTask]) -> None:
        for task in tasks:
            self._held.pop((task.id, task.version), None)
        self._freed.set()

    def _hold(self, task: ClaimedTask, until: float) -> None:
        self._held[task.id, task.version] = task, until

    def _alive(self) -> list[Fence]:
        """What is ours and still has time. Called by the heartbeat's thread: copied in one piece."""
        now = time.monotonic()
        return [task.fence for task, until in [*self._held.values()] if until > now]

    # What the hands tell.

    def begun(self, run: Run) -> None:
        self._hold(run.task, run.deadline)

    def came_to(self, run: Run, ran: Ran) -> None:
        # Held until it is stored: a database that is away must not make others run it again.
        self._hold(run.task, float("inf"))
        end = finish(run.task.tried, ran.result, run.terms.backoff)
        milliseconds = round(1000 * (time.monotonic() - run.began))
        self._announce(run.task, end, milliseconds, ran.trace)
        self._finisher.finish(run.task, end, milliseconds)

    def cannot_stop(self, run: Run) -> None:
        tell(TaskOverdue(*self._about(run.task), run.terms.timeout))

    def freed(self) -> None:
        self._freed.set()

    def _announce(self, task: ClaimedTask, end: Finish, milliseconds: int, trace: str) -> None:
        if end.status is TaskStatus.SUCCESS and not is_heard(TaskSucceeded):
            return
        about = self._about(task)
        if end.status is TaskStatus.SUCCESS:
            tell(TaskSucceeded(*about, milliseconds))
        elif end.status is TaskStatus.FAIL_RETRY:
            tell(TaskRetryScheduled(*about, milliseconds, end.result_msg, round(end.delay, 3), trace))
        else:
            tell(TaskFailed(*about, milliseconds, end.result_msg, trace))

    def _about(self, task: ClaimedTask) -> tuple[str, int, str, str, int]:
        return task.correlation_id, task.id, task.biz_type, self._worker_id, task.retry_count + 1
