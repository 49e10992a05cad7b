"""Tasks and workers: what the tests of the task worker start from. Time is moved by data."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any

from tests.support.at_work import at_work
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.decisions.retrying import Backoff
from tidings.roles.task_worker.worker import TaskLimits, TaskWorker
from tidings.tasks import Handlers
from tidings.tasks.handlers import Terms

TERMS = Terms(concurrency=100, timeout=60, visibility_timeout=600, backoff=Backoff(60, 3600, 0.1))
LIMITS = TaskLimits(slots=100, threads=8, grace=5, terms=TERMS)


@dataclass
class Scene:
    database: Database
    workers: int = 0

    async def sql(self, text: str) -> Sequence[Any]:
        return await self.database.sql(text)

    async def submit(
        self,
        biz_type: str = "A",
        count: int = 1,
        *,
        payload: object = None,
        due_since: float = 1,
        **columns: int,
    ) -> list[int]:
        """So many tasks, due for so many seconds or, if that is negative, so many seconds from now on."""
        first = await self.database.value("SELECT COALESCE(MAX(id), 0) + 1 FROM sys_pending_tasks")
        given = {
            "biz_type": f"'{biz_type}'",
            "biz_key": f"CONCAT({first}, '-', seq)",
            "payload": "'" + json.dumps(payload).replace("'", "''") + "'",
            "next_run_time": self.words.ago(due_since),
            **{name: str(value) for name, value in columns.items()},
        }
        await self.sql(
            f"INSERT INTO sys_pending_tasks ({', '.join(given)}) SELECT {', '.join(given.values())}"
            f" FROM {self.words.numbers(count)} ORDER BY seq"
        )
        rows = await self.sql(f"SELECT id FROM sys_pending_tasks WHERE id >= {first} ORDER BY id")
        return [row["id"] for row in rows]

    @property
    def words(self) -> Words:
        return Words(self.database)

    async def task(self, id: int) -> dict[str, Any]:
        (row,) = await self.sql(f"SELECT * FROM sys_pending_tasks WHERE id = {id}")
        return dict(row)

    async def statuses(self) -> dict[int, int]:
        rows = await self.sql("SELECT status, COUNT(*) AS tasks FROM sys_pending_tasks GROUP BY status")
        return {row["status"]: row["tasks"] for row in rows}

    async def delay(self, id: int) -> float:
        """Seconds from the last change of a task until its next time."""
        row = await self.task(id)
        return float((row["next_run_time"] - row["updated_at"]).total_seconds())

    async def grow_silent(self, *ids: int, seconds: float = 3600) -> None:
        """As if the last sign of life had been given so long ago."""
        listed = ", ".join(map(str, ids))
        await self.sql(f"UPDATE sys_pending_tasks SET updated_at = {self.words.ago(seconds)} WHERE id IN ({listed})")

    async def rescue(self, *ids: int) -> None:
        """As the rescuer does."""
        listed = ", ".join(map(str, ids))
        await self.sql(
            "UPDATE sys_pending_tasks SET status = 3, version = version + 1, retry_count = retry_count + 1,"
            f" result_msg = 'Task timed out (Worker crashed?)', next_run_time = {self.words.ago(0)}"
            f" WHERE id IN ({listed}) AND status = 1"
        )

    async def worker(
        self, handlers: Handlers, role: str = "task_worker", engine: Engine | None = None, **limits: Any
    ) -> TaskWorker:
        self.workers += 1
        engine = engine or await self.database.open(role, size=3)
        terms = {name: limits.pop(name) for name in [*limits] if name in vars(TERMS)}
        return TaskWorker(
            engine, handlers, f"w{self.workers}", replace(LIMITS, terms=replace(TERMS, **terms), **limits)
        )

    def working(self, *workers: TaskWorker) -> AbstractAsyncContextManager[None]:
        return at_work("task-worker", *workers)

    async def work_off(self, *workers: TaskWorker) -> None:
        """Until nothing is due and nothing runs."""

        async def is_over() -> bool:
            return not await self.database.value(
                "SELECT COUNT(*) FROM sys_pending_tasks"
                f" WHERE status = 1 OR (status IN (0, 3) AND next_run_time <= {self.words.ago(0)})"
            )

        async with self.working(*workers):
            await eventually(is_over, 20, "all tasks to end")
