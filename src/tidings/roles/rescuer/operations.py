"""What the rescuer asks of the database and writes into it; every statement takes a whole batch."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidings.db.operations import Operations
from tidings.decisions.finishing import Finish, Tried
from tidings.model.task import TaskStatus


@dataclass(frozen=True)
class SilentTask:
    id: int
    biz_type: str
    retry_count: int
    max_retries: int
    worker_id: str | None
    correlation_id: str

    @property
    def tried(self) -> Tried:
        return Tried(self.id, self.retry_count, self.max_retries)


class RescuerOperations(Operations):
    async def silent_tasks(self, seconds: float, but: Collection[str], limit: int) -> list[SilentTask]:
        rows = await self._rows("silent_tasks", seconds=seconds, but=list(but), limit=limit)
        return [SilentTask(**row) for row in rows]

    async def silent_tasks_of(self, types: Sequence[str], seconds: float, limit: int) -> list[SilentTask]:
        rows = await self._rows("silent_tasks_of", types=types, seconds=seconds, limit=limit)
        return [SilentTask(**row) for row in rows]

    async def end_silence(self, ids: Sequence[int], end: Finish) -> None:
        """Of tasks that are locked, and so are still silent."""
        name = "rescue" if end.status is TaskStatus.FAIL_RETRY else "give_up"
        await self._run(name, ids=ids, result_msg=end.result_msg)
