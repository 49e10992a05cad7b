"""Stores what came of tasks, in batches, under the fence of each claim; kept and stored again until it is heard.

While one batch is on its way the next one gathers; a database that is away loses nothing that was done.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.db.engine import Engine
from tidings.db.halving import write_by_halves
from tidings.decisions.finishing import Finish
from tidings.errors import StatementDenied, StatementFailed, TidingsError
from tidings.model.task import TaskStatus
from tidings.roles.task_worker.operations import ClaimedTask, Fence, TaskWorkerOperations
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import ReportDelayed, RowSetAside, TaskFenceLost, TasksGivenBack

BATCH = 500
LONGEST_PAUSE = 2.0


class Ended(NamedTuple):
    """A task, and how it ended or goes on."""

    task: ClaimedTask
    end: Finish


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
        self._ended: list[Ended] = []
        self._given_back: list[GivenBack] = []
        self._news = asyncio.Event()
        self._closing = False
        self._work: asyncio.Task[None] | None = None
        self.lost = 0

    @property
    def unheard(self) -> int:
        return len(self._ended) + len(self._given_back)

    def start(self) -> None:
        """Raises what ended it, if something did: whoever can't store results must not run handlers."""
        if self._work is None:
            self._work = asyncio.create_task(self._go_on(), name="results of tasks")
        elif self._work.done():
            self._work.result()

    def finish(self, task: ClaimedTask, end: Finish) -> None:
        self._ended.append(Ended(task, end))
        self._news.set()

    def give_back(self, task: ClaimedTask, reason: str) -> None:
        self._given_back.append(GivenBack(task, reason))
        self._news.set()

    async def close(self, deadline: float) -> None:
        """Waits until everything is heard, for `deadline` seconds at most."""
        self._closing = True
        self._news.set()
        if self._work is not None:
            await asyncio.wait([self._work], timeout=deadline)
            self._work.cancel()

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
            ended, given_back = self._ended[:BATCH], self._given_back[:BATCH]
            stored = await self._store(ended, given_back)
            del self._ended[: len(ended)], self._given_back[: len(given_back)]
            self.lost += len(stored.lost)
            self._announce(ended, given_back, stored)
            self._on_heard([*(task for task, _ in ended), *(task for task, _ in given_back)])

    async def _store(self, ended: Sequence[Ended], given_back: Sequence[GivenBack]) -> Stored:
        """Once in a few statements; if the database refuses something of it, again by halves."""

        async def store(operations: TaskWorkerOperations, carefully: bool) -> Stored:
            stored = Stored()

            async def write(some: Sequence[Ended]) -> None:
                stored.lost |= await _write(operations, some, self._worker_id)

            if carefully:
                stored.refused = await write_by_halves(operations, ended, write)
            else:
                await write(ended)
            fences = [Fence(task.id, task.version, task.was) for task, _ in given_back]
            await operations.give_back(fences, self._worker_id)
            return stored

        try:
            return await TaskWorkerOperations.step(self._engine, lambda operations: store(operations, False))
        except StatementDenied:
            raise
        except StatementFailed:
            return await TaskWorkerOperations.step(self._engine, lambda operations: store(operations, True))

    def _announce(self, ended: Sequence[Ended], given_back: Sequence[GivenBack], stored: Stored) -> None:
        for task, end in ended if stored.lost else ():
            if task.id in stored.lost:
                about = (task.correlation_id, task.id, task.biz_type, self._worker_id, task.retry_count + 1)
                tell(TaskFenceLost(*about, end.status.name, end.result_msg))
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
