"""What the task worker asks of the database and writes into it; every statement takes a whole batch.

It touches nothing but pending tasks, so that any role with the same rights on them can work by it.
"""

import datetime
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.decisions.claiming import Head, Lane, Place, Stretch
from tidings.decisions.finishing import Finish, Tried
from tidings.model.task import TaskStatus


class Fence(NamedTuple):
    """What a claim gave: this task, under this version."""

    id: int
    version: int
    was: int


class Candidate(NamedTuple):
    """A task that may be claimed, as it was read; `version` is what a claim must still find."""

    id: int
    version: int
    status: int
    priority: int
    next_run_time: datetime.datetime
    biz_type: str
    biz_key: str
    payload: str | None
    retry_count: int
    max_retries: int
    correlation_id: str

    @property
    def lane(self) -> tuple[str, int]:
        return self.biz_type, self.priority

    def claimed(self) -> "ClaimedTask":
        """With this version nobody has changed anything since it was read."""
        about = (self.biz_type, self.biz_key, self.payload, self.retry_count, self.max_retries)
        return ClaimedTask(self.id, *about, self.version + 1, self.correlation_id, self.status)


class ClaimedTask(NamedTuple):
    """A task that is ours under this `version`; `was` is the status to which it goes back if it is not begun."""

    id: int
    biz_type: str
    biz_key: str
    payload: str | None
    retry_count: int
    max_retries: int
    version: int
    correlation_id: str
    was: int = TaskStatus.PENDING

    @property
    def fence(self) -> Fence:
        return Fence(self.id, self.version, self.was)

    @property
    def tried(self) -> Tried:
        return Tried(self.id, self.retry_count, self.max_retries)


class TaskWorkerOperations(Operations):
    async def heads(self, stretches: Sequence[Stretch]) -> list[Head]:
        asked = [(one.biz_type, one.lowest, one.highest) for one in stretches]
        return _heads(await self._rows("heads", stretches=asked)) if asked else []

    async def heads_behind(self, passed: Mapping[tuple[str, int], Place]) -> list[Head]:
        """The first waiting task of each of these lanes behind the one that was passed last."""
        asked = [(*lane, place.next_run_time, place.id) for lane, place in passed.items()]
        return _heads(await self._rows("heads_behind", lanes=asked)) if asked else []

    async def candidates(self, lanes: Sequence[Lane], *, only_free: bool) -> list[Candidate]:
        name = "free_candidates" if only_free else "candidates"
        asked = [(one.biz_type, one.priority, one.room, one.passed.next_run_time, one.passed.id) for one in lanes]
        return [Candidate._make(row.values()) for row in await self._rows(name, lanes=asked)]

    async def claim(self, candidates: Sequence[Candidate], worker_id: str) -> list[ClaimedTask]:
        """Those of the candidates that nobody else was quicker to claim."""
        pairs = {"ids": [one.id for one in candidates], "versions": [one.version for one in candidates]}
        count = await self._run("claim", **pairs, worker_id=worker_id)
        if count < len(candidates):
            ours = {row["id"] for row in await self._rows("claimed", **pairs, worker_id=worker_id)} if count else ()
            candidates = [one for one in candidates if one.id in ours]
        return [one.claimed() for one in candidates]

    async def succeed(self, tasks: Sequence[ClaimedTask]) -> int:
        return await self._run("succeed", **_pairs(tasks)) if tasks else 0

    async def retry(self, tasks: Sequence[ClaimedTask], ends: Sequence[Finish]) -> int:
        messages, delays = [end.result_msg for end in ends], [end.delay for end in ends]
        return await self._run("retry", **_pairs(tasks), messages=messages, delays=delays) if tasks else 0

    async def bury(self, tasks: Sequence[ClaimedTask], ends: Sequence[Finish]) -> int:
        return await self._run("bury", **_pairs(tasks), messages=[end.result_msg for end in ends]) if tasks else 0

    async def finished(
        self, tasks: Sequence[ClaimedTask], status: TaskStatus, messages: Sequence[str], worker_id: str
    ) -> set[int]:
        """Of these tasks those that ended so, and by us."""
        rows = await self._rows(
            "finished", **_pairs(tasks), status=status.value, messages=messages, worker_id=worker_id
        )
        return {row["id"] for row in rows}

    async def beat(self, fences: Sequence[Fence]) -> int:
        return await self._run("beat", **_pairs(fences)) if fences else 0

    async def give_back(self, fences: Sequence[Fence], worker_id: str) -> int:
        """They were not begun; those that are not ours stay as they are."""
        statuses = [one.was for one in fences]
        return await self._run("give_back", **_pairs(fences), statuses=statuses, worker_id=worker_id) if fences else 0


def _heads(rows: Sequence[Row]) -> list[Head]:
    return [Head(row["biz_type"], row["priority"], bool(row["is_due"])) for row in rows]


def _pairs(tasks: Sequence[ClaimedTask] | Sequence[Fence]) -> dict[str, list[int]]:
    return {"ids": [task.id for task in tasks], "versions": [task.version for task in tasks]}
