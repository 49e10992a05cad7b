"""Tasks of an installation, as tests put them there and look at them: in the queue and in the history."""

from collections.abc import Sequence
from typing import Any

from tests.support.database import Database

TASKS, HISTORY = "sys_pending_tasks", "sys_pending_tasks_history"
COLUMNS = (
    "id, biz_type, biz_key, status, priority, payload, result_msg, retry_count, max_retries, next_run_time, version,"
    " worker_id, correlation_id, created_at, updated_at"
)


class Queue:
    def __init__(self, database: Database) -> None:
        self.database = database
        self._made = 0

    async def add(self, count: int = 1, status: int = 0, **columns: str) -> list[int]:
        """So many tasks of type MAIL with keys of their own, in this status; `columns` are SQL. Returns their ids."""
        before = await self.database.value(f"SELECT COALESCE(MAX(id), 0) FROM {TASKS}")
        given = {"biz_type": "'MAIL'", "payload": "'{\"a\":  1}'", "status": str(status), **columns}
        keys = [f"'k{self._made + number}'" for number in range(count)]
        rows = ", ".join(f"({', '.join(({'biz_key': key} | given).values())})" for key in keys)
        names = ", ".join({"biz_key": "", **given})
        await self.database.sql(f"INSERT INTO {TASKS} ({names}) VALUES {rows}")
        self._made += count
        return [row["id"] for row in await self.database.sql(f"SELECT id FROM {TASKS} WHERE id > {before} ORDER BY id")]

    async def ended(
        self, count: int = 1, status: int = 2, updated_at: str = "'2020-01-01'", **columns: str
    ) -> list[int]:
        """The same for tasks that ended long ago."""
        return await self.add(count, status, updated_at=updated_at, **columns)

    async def archive(self, *ids: int) -> None:
        listed = ", ".join(map(str, ids))
        await self.database.sql(
            f"INSERT INTO {HISTORY} ({COLUMNS}) SELECT {COLUMNS} FROM {TASKS} WHERE id IN ({listed})"
        )
        await self.database.sql(f"DELETE FROM {TASKS} WHERE id IN ({listed})")

    async def rows(self, table: str = TASKS) -> list[dict[str, Any]]:
        columns = COLUMNS if table == TASKS else f"{COLUMNS}, archived_at"
        return [dict(row) for row in await self.database.sql(f"SELECT {columns} FROM {table} ORDER BY id")]

    async def row(self, id: int, table: str = TASKS) -> dict[str, Any]:
        (row,) = [row for row in await self.rows(table) if row["id"] == id]
        return row

    async def ids(self, table: str = TASKS) -> list[int]:
        return [row["id"] for row in await self.database.sql(f"SELECT id FROM {table} ORDER BY id")]

    async def where(self) -> dict[int, str]:
        """Of each task, in which table it is; AssertionError if in both. Read as of one moment."""
        rows: Sequence[Any] = await self.database.sql(
            f"SELECT id, 'queue' AS place FROM {TASKS} UNION ALL SELECT id, 'history' FROM {HISTORY} ORDER BY id"
        )
        places = {row["id"]: row["place"] for row in rows}
        assert len(places) == len(rows), "a task is in both tables"
        return places

    async def audited(self) -> list[tuple[str, str, str]]:
        rows = await self.database.sql("SELECT actor, action, subject FROM audit_log ORDER BY id")
        return [(row["actor"], row["action"], row["subject"]) for row in rows]
