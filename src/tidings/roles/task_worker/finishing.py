"""Stores what came of tasks, under the fence of each claim, and gives back those that were not begun."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.db.engine import Engine
from tidings.db.halving import write_by_halves
from tidings.decisions.finishing import Finish
from tidings.errors import StatementFailed
from tidings.model.task import TaskStatus
from tidings.roles.task_worker.operations import ClaimedTask, TaskWorkerOperations
from tidings.runtime.outbox import Outbox
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import RowSetAside, TaskFenceLost, TasksGivenBack, TasksSucceeded


class Ended(NamedTuple):
    """A task, and how it ended or goes on."""

    task: ClaimedTask
    end: Finish
    duration_ms: int


class GivenBack(NamedTuple):
    """A claimed task that was not begun."""

    task: ClaimedTask
    reason: str


@dataclass
class Stored:
    """Of what was to be stored: tasks whose fence was no longer ours, and what the database refused."""

    lost: set[int] = field(default_factory=set)
    refused: list[tuple[Ended, StatementFailed]] = field(default_factory=list)


class Finisher:
    """`on_heard` is called with the tasks that are settled, and need no more signs of life."""

    def __init__(self, engine: Engine, worker_id: str, on_heard: Callable[[Sequence[ClaimedTask]], None]) -> None:
        self._engine = engine
        self._worker_id = worker_id
        self._on_heard = on_heard
        self._outbox = Outbox[Ended, GivenBack](worker_id, self._say)
        self.start, self.close = self._outbox.start, self._outbox.close
        self.lost = 0

    @property
    def unheard(self) -> int:
        return self._outbox.unheard

    def finish(self, task: ClaimedTask, end: Finish, duration_ms: int) -> None:
        self._outbox.was_done(Ended(task, end, duration_ms))

    def give_back(self, task: ClaimedTask, reason: str) -> None:
        self._outbox.was_not_begun(GivenBack(task, reason))

    async def _say(self, ended: Sequence[Ended], given_back: Sequence[GivenBack]) -> None:
        async def store(operations: TaskWorkerOperations, carefully: bool) -> Stored:
            stored = Stored()

            async def write(some: Sequence[Ended]) -> None:
                stored.lost |= await _write(operations, some, self._worker_id)

            if carefully:
                stored.refused = await write_by_halves(operations, ended, write)
            else:
                await write(ended)
            await operations.give_back([task.fence for task, _ in given_back], self._worker_id)
            return stored

        stored = await TaskWorkerOperations.careful_step(self._engine, store)
        self.lost += len(stored.lost)
        self._announce(ended, given_back, stored)
        self._on_heard([*(one.task for one in ended), *(one.task for one in given_back)])

    def _announce(self, ended: Sequence[Ended], given_back: Sequence[GivenBack], stored: Stored) -> None:
        took: dict[str, list[int]] = defaultdict(list)
        for task, end, duration in ended:
            if end.status is TaskStatus.SUCCESS:
                took[task.biz_type].append(duration)
            if task.id in stored.lost:
                about = (task.correlation_id, task.id, task.biz_type, self._worker_id, task.retry_count + 1)
                tell(TaskFenceLost(*about, end.status.name, end.result_msg))
        for biz_type, durations in took.items():
            tell(TasksSucceeded(self._worker_id, biz_type, tuple(durations)))
        for one, error in stored.refused:
            tell(RowSetAside("task-worker", f"task:{one.task.id}", error.what))
        for reason in dict.fromkeys(one.reason for one in given_back):
            ids = tuple(one.task.id for one in given_back if one.reason == reason)
            tell(TasksGivenBack(self._worker_id, ids, reason))


async def _write(operations: TaskWorkerOperations, ended: Sequence[Ended], worker_id: str) -> set[int]:
    """One statement for each way to end; the tasks that were no longer ours."""
    lost: set[int] = set()
    for status in (TaskStatus.SUCCESS, TaskStatus.FAIL_RETRY, TaskStatus.FAIL_TERMINAL):
        some = [one for one in ended if one.end.status is status]
        tasks, ends = [one.task for one in some], [one.end for one in some]
        if status is TaskStatus.SUCCESS:
            stored = await operations.succeed(tasks)
        elif status is TaskStatus.FAIL_RETRY:
            stored = await operations.retry(tasks, ends)
        else:
            stored = await operations.bury(tasks, ends)
        if stored < len(tasks):
            # What was stored before an answer was lost is found as it was said, and is no loss.
            known = await operations.finished(tasks, status, [end.result_msg for end in ends], worker_id)
            lost |= {task.id for task in tasks} - known
    return lost
