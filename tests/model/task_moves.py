"""One task as it could go: its row, and what two workers think they hold of it; archived when it has ended (seed 003).

The product's own pure decisions say how a task ends or goes on; the guards of its statements are said here once more.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from tests.model.exploring import Move
from tidings.decisions.finishing import Failed, Finish, HandlerResult, Succeeded, Tried, finish, rescue
from tidings.decisions.retrying import Backoff
from tidings.model.task import TaskStatus

WORKERS = (0, 1)
BACKOFF = Backoff(1, 1, 0)
WAITING = (TaskStatus.PENDING, TaskStatus.FAIL_RETRY)
ENDS = (TaskStatus.SUCCESS, TaskStatus.FAIL_TERMINAL)


class Stage(StrEnum):
    """What a worker has of a task: read as a candidate, claimed, or run with this end."""

    READ = "read"
    CLAIMED = "claimed"
    DONE = "done"
    FAILED = "failed"


class Fence(NamedTuple):
    """`is_last`: the version that it knows is still the row's."""

    stage: Stage
    is_last: bool = True


class Task(NamedTuple):
    """`runs`: how often a handler was begun. `places`: in how many tables it is."""

    status: TaskStatus = TaskStatus.PENDING
    retries: int = 0
    runs: int = 0
    places: int = 1
    was_done: bool = False
    is_silent: bool = False
    fences: tuple[Fence | None, ...] = (None, None)


@dataclass(frozen=True)
class Rules:
    """The decisions, and the guards of the statements; tests replace one of them by a wrong one."""

    finish: Callable[[Tried, HandlerResult, Backoff], Finish] = finish
    rescue: Callable[[Tried], Finish] = rescue
    claim_checks_version: bool = True
    finish_checks_version: bool = True
    finish_checks_status: bool = True
    moves_add_to_version: bool = True
    archive_is_one_transaction: bool = True
    counts_rescues: bool = True


@dataclass(frozen=True)
class World:
    """`falls_silent`: a worker may look dead and be alive."""

    rules: Rules = field(default_factory=Rules)
    max_retries: int = 2
    crashes: bool = True
    falls_silent: bool = True

    def moves(self, now: Task) -> Iterator[Move[Task]]:
        for worker in WORKERS:
            yield from self._worker(now, worker)
        yield from self._rescuer(now)
        yield from self._archiver(now)

    def _worker(self, now: Task, worker: int) -> Iterator[Move[Task]]:
        fence = now.fences[worker]
        if fence is None:
            if now.status in WAITING and now.places:
                yield Move(f"read {worker}", _fenced(now, worker, Fence(Stage.READ)))
            return
        if self.crashes:
            yield Move(f"crash {worker}", _fenced(now, worker, None), is_fault=True)
        match fence.stage:
            case Stage.READ:
                yield Move(f"claim {worker}", self._claimed(now, worker, fence))
            case Stage.CLAIMED:
                yield Move(f"succeed {worker}", self._run(now, worker, fence, Stage.DONE))
                yield Move(f"fail {worker}", self._run(now, worker, fence, Stage.FAILED), is_fault=True)
                yield Move(f"give back {worker}", self._given_back(now, worker, fence))
            case _:
                finished = self._finished(now, fence)
                yield Move(f"store {worker}", _fenced(finished, worker, None))
                yield Move(f"store unheard {worker}", finished, is_fault=True)

    def _claimed(self, now: Task, worker: int, fence: Fence) -> Task:
        may = fence.is_last or not self.rules.claim_checks_version
        if not may or now.status not in WAITING or not now.places:
            return _fenced(now, worker, None)
        return _fenced(self._moved(now._replace(status=TaskStatus.PROCESSING)), worker, Fence(Stage.CLAIMED))

    def _run(self, now: Task, worker: int, fence: Fence, how: Stage) -> Task:
        begun = now._replace(runs=min(now.runs + 1, 9), was_done=now.was_done or how is Stage.DONE)
        return _fenced(begun, worker, fence._replace(stage=how))

    def _given_back(self, now: Task, worker: int, fence: Fence) -> Task:
        if fence.is_last and now.status is TaskStatus.PROCESSING:
            now = self._moved(now._replace(status=TaskStatus.PENDING, is_silent=False))
        return _fenced(now, worker, None)

    def _finished(self, now: Task, fence: Fence) -> Task:
        if self.rules.finish_checks_version and not fence.is_last:
            return now
        if self.rules.finish_checks_status and now.status is not TaskStatus.PROCESSING:
            return now
        result = Succeeded() if fence.stage is Stage.DONE else Failed("it broke")
        return self._ended(now, self.rules.finish(Tried(1, now.retries, self.max_retries), result, BACKOFF))

    def _rescuer(self, now: Task) -> Iterator[Move[Task]]:
        if now.status is not TaskStatus.PROCESSING:
            return
        if not now.is_silent:
            is_alone = not any(fence and fence.is_last and fence.stage is not Stage.READ for fence in now.fences)
            if self.falls_silent or is_alone:
                yield Move("fall silent", now._replace(is_silent=True), is_fault=not is_alone)
        else:
            end = self.rules.rescue(Tried(1, now.retries, self.max_retries))
            rescued = self._ended(now, end)
            if not self.rules.counts_rescues:
                rescued = rescued._replace(retries=now.retries, status=TaskStatus.FAIL_RETRY)
            yield Move("rescue", rescued)

    def _ended(self, now: Task, end: Finish) -> Task:
        counted = now.retries + (end.status is TaskStatus.FAIL_RETRY)
        return self._moved(now._replace(status=end.status, retries=counted, is_silent=False))

    def _archiver(self, now: Task) -> Iterator[Move[Task]]:
        if now.status in ENDS and now.places == 1 and not self.rules.archive_is_one_transaction:
            yield Move("remove", now._replace(places=0))

    def _moved(self, now: Task) -> Task:
        """Every move adds one to the version: what others know is outdated."""
        if not self.rules.moves_add_to_version:
            return now
        return now._replace(fences=tuple(fence and fence._replace(is_last=False) for fence in now.fences))


def _fenced(now: Task, worker: int, fence: Fence | None) -> Task:
    return now._replace(fences=tuple(fence if one == worker else now.fences[one] for one in WORKERS))
