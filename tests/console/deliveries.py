"""Events with a past, for pages that show it: published, routed, tried and given up by the real roles."""

import datetime
from typing import Any

from tests.roles.observer.world import World
from tests.support.database import Database
from tests.support.engine_words import Words

HOSTILE = """<script>alert(1)</script><img src=x onerror=alert(2)>"' onmouseover="alert(3)"""
QUOTED = HOSTILE.replace("'", "''")


class Deliveries(World):
    """Subscription 1 takes what it gets, subscription 2 answers 503 with an excerpt that nobody should trust."""

    @classmethod
    async def of(cls, database: Database) -> "Deliveries":
        made = cls(database)
        await made.set()
        return made

    async def report(self) -> None:
        text = Words(self.database).binary(b"no room " + HOSTILE.encode())
        given = "finished_at = created_at, duration_ms = 123, worker_id = 'worker-7'"
        for subscription, outcome in (
            (1, "status = 'Completed', response_status = 204"),
            (2, f"status = 'Failed', error_code = 'http_503', response_status = 503, response_excerpt = {text}"),
        ):
            await self.sql(
                f"UPDATE webhook_delivery_jobs SET {outcome}, {given}"
                f" WHERE status = 'Pending' AND subscription_id = {subscription}"
            )

    async def value(self, text: str) -> Any:
        return await self.database.value(text)

    async def events(self, count: int, **columns: str) -> list[int]:
        """So many events that nobody has routed; `columns` are SQL."""
        before = await self.value("SELECT COALESCE(MAX(id), 0) FROM events")
        given = {"event_type": "'order.paid'", "payload": "'{}'", **columns}
        rows = ", ".join([f"({', '.join(given.values())})"] * count)
        await self.sql(f"INSERT INTO events ({', '.join(given)}) VALUES {rows}")
        found = await self.database.sql(f"SELECT id FROM events WHERE id > {before} ORDER BY id")
        return [row["id"] for row in found]


def ago(**span: float) -> str:
    """A moment as SQL text, and as a browser's field would give it."""
    return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%S")
