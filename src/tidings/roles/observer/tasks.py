"""What the observer can tell about tasks: those in the queue, those in the history, and who did what to one.

Lists come in pages, along an index, and never carry payloads.
"""

import json

from tidings.db.operations import Operations
from tidings.errors import NotFound
from tidings.model.task import TaskStatus
from tidings.roles.observer.listing import END, EVER, SHOWN_OF_ONE, Shown, dicts


class TaskObserver(Operations):
    """`after` and `before` are the id of the last task of a page."""

    async def tasks(self, limit: int, before: int = END) -> list[Shown]:
        return dicts(await self._rows("tasks_before", before=before, limit=limit))

    async def tasks_of_status(self, status: TaskStatus, limit: int, after: int = 0) -> list[Shown]:
        """The longest due first."""
        last = await self.task(after) if after else {"next_run_time": EVER, "priority": 0}
        rows = await self._rows(
            "tasks_of_status",
            status=status.value,
            since=last["next_run_time"],
            priority=last["priority"],
            after=after,
            limit=limit,
        )
        return dicts(rows)

    async def tasks_of_type(self, biz_type: str, limit: int, after: int = 0) -> list[Shown]:
        """By business key."""
        after_key = (await self.task(after))["biz_key"] if after else ""
        return dicts(await self._rows("tasks_of_type", biz_type=biz_type, after_key=after_key, limit=limit))

    async def task_of_key(self, biz_type: str, biz_key: str) -> list[Shown]:
        return dicts(await self._rows("task_of_key", biz_type=biz_type, biz_key=biz_key))

    async def archived(self, limit: int, before: int = END) -> list[Shown]:
        return dicts(await self._rows("archived_tasks_before", before=before, limit=limit))

    async def archived_of_type(self, biz_type: str, limit: int, after: int = 0) -> list[Shown]:
        """By business key."""
        after_key = (await self.task(after))["biz_key"] if after else ""
        rows = await self._rows(
            "archived_tasks_of_type", biz_type=biz_type, after_key=after_key, after=after, limit=limit
        )
        return dicts(rows)

    async def archived_of_key(self, biz_type: str, biz_key: str, limit: int, after: int = 0) -> list[Shown]:
        rows = await self._rows("archived_tasks_of_key", biz_type=biz_type, biz_key=biz_key, after=after, limit=limit)
        return dicts(rows)

    async def task(self, id: int) -> Shown:
        """One task, wherever it is, with its payload and what people did to it. `archived_at` is None in the queue."""
        # In this order: between the two questions a task may go from the queue to the history, never back.
        row = await self._row("task", id=id) or await self._row("archived_task", id=id)
        if row is None:
            raise NotFound(f"There is no task {id}.", "`tidings tasks list` shows the newest ones, also --archived.")
        audits = await self._rows("audits_of", subject=f"task:{id}", limit=SHOWN_OF_ONE)
        entries = [{**audit, "detail": json.loads(audit["detail"] or "null")} for audit in audits]
        return {"archived_at": None, **row, "audit": entries}
