"""What the person who acts on tasks asks of the database and writes into it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidings.db.operations import Operations
from tidings.model.task import TaskStatus
from tidings.telemetry.asking import asked

Key = tuple[str, str]


@dataclass(frozen=True)
class ArchivedTask:
    status: TaskStatus
    key: Key


class TaskCommandOperations(Operations):
    async def lock_tasks(self, ids: Sequence[int]) -> dict[int, TaskStatus]:
        """Those that are in the queue; nobody else moves them until the end of the transaction."""
        rows = await self._rows("lock_tasks", ids=ids)
        return {row["id"]: TaskStatus(row["status"]) for row in rows}

    async def archived_tasks(self, ids: Sequence[int]) -> dict[int, ArchivedTask]:
        rows = await self._rows("archived_tasks", ids=ids) if ids else ()
        return {row["id"]: ArchivedTask(TaskStatus(row["status"]), (row["biz_type"], row["biz_key"])) for row in rows}

    async def retry_tasks(self, ids: Sequence[int]) -> None:
        if ids:
            await self._run("retry_tasks", ids=ids)

    async def submit_archived(self, ids: Sequence[int]) -> dict[Key, int]:
        """The new tasks, by their business keys; none where the key is taken."""
        rows = await self._rows("submit_archived", ids=ids) if ids else ()
        return {(row["biz_type"], row["biz_key"]): row["id"] for row in rows}

    async def cancel_tasks(self, ids: Sequence[int], message: str) -> None:
        if ids:
            await self._run("cancel_tasks", ids=ids, message=message)

    async def audit(self, actor: str, action: str, details: dict[int, dict[str, Any]]) -> None:
        """One entry for each task."""
        entries = [
            (actor, action, f"task:{id}", json.dumps(detail), *asked().values()) for id, detail in details.items()
        ]
        if entries:
            await self._run("audit", entries=entries)
