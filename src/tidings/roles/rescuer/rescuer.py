"""One rescuer: now and then takes back the tasks whose workers gave no sign of life for longer than their type allows.

It waits a little after every new connection, so that workers which lost the database at the same time can speak first.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.decisions.finishing import Finish, rescue
from tidings.model.task import TaskStatus
from tidings.roles.rescuer.operations import RescuerOperations, SilentTask
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import TaskGivenUp, TaskRescued

BATCH = 500
SECONDS_BETWEEN_ROUNDS = 30.0
SECONDS_BEFORE_THE_FIRST = 5.0


@dataclass(frozen=True)
class Rescued:
    """How many tasks one step took back, and how many of those have no retry left."""

    tasks: int = 0
    given_up: int = 0

    @property
    def did_work(self) -> bool:
        return bool(self.tasks)


class Rescuer:
    """`engine` is one of the role task_rescuer. `of_types` has the timeouts of types that differ from the others."""

    def __init__(
        self,
        engine: Engine,
        visibility_timeout: float,
        of_types: Mapping[str, float] | None = None,
        *,
        every: float = SECONDS_BETWEEN_ROUNDS,
        patience: float = SECONDS_BEFORE_THE_FIRST,
        batch: int = BATCH,
    ) -> None:
        self._engine = engine
        self._visibility_timeout = visibility_timeout
        self._types: dict[float, list[str]] = defaultdict(list)
        for biz_type, seconds in (of_types or {}).items():
            if seconds != visibility_timeout:
                self._types[seconds].append(biz_type)
        self._every = every
        self._patience = patience
        self._batch = batch
        self._next = float("-inf")

    async def step(self) -> Rescued:
        """Safe to run in any number at once: what one has locked the others pass over, and find ended afterwards."""
        if time.monotonic() < self._next:
            return Rescued()
        ends = await RescuerOperations.step(self._engine, self._rescue)
        if time.monotonic() < self._begins_at:
            self._next = self._begins_at
        elif len(ends) < self._batch:
            self._next = time.monotonic() + self._every
        _announce(ends)
        return Rescued(len(ends), sum(_is_given_up(end) for _, end in ends))

    async def _rescue(self, operations: RescuerOperations) -> list[tuple[SilentTask, Finish]]:
        # Asked in here: only now it is known whether the connection had to be made anew.
        if time.monotonic() < self._begins_at:
            return []
        ends = [(task, rescue(task.tried)) for task in await self._silent(operations)]
        for end in {end for _, end in ends}:
            await operations.end_silence([task.id for task, its in ends if its == end], end)
        return ends

    async def _silent(self, operations: RescuerOperations) -> list[SilentTask]:
        named = [biz_type for types in self._types.values() for biz_type in types]
        found = await operations.silent_tasks(self._visibility_timeout, named, self._batch)
        for seconds, types in self._types.items():
            found += await operations.silent_tasks_of(types, seconds, self._batch)
        return found

    @property
    def _begins_at(self) -> float:
        return self._engine.connected_at + self._patience


def _announce(ends: Sequence[tuple[SilentTask, Finish]]) -> None:
    for task, end in ends:
        notice = TaskGivenUp if _is_given_up(end) else TaskRescued
        tell(notice(task.correlation_id, task.id, task.biz_type, task.worker_id, task.retry_count + 1))


def _is_given_up(end: Finish) -> bool:
    return end.status is TaskStatus.FAIL_TERMINAL
