"""An installation with open gates and routes, events in it, and a router: what the tests of routing start from."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.database import Database
from tidings.roles.router.router import Outcome, Pass, Router


@dataclass
class Scene:
    """The database through the owner's eyes, and the router `default`."""

    database: Database
    router: Router

    async def sql(self, text: str) -> Sequence[Any]:
        return await self.database.sql(text)

    async def open_gates(self, worker: str = "default") -> None:
        for name in ("routing", f"router:{worker}"):
            await self.sql(f"INSERT INTO gates (name, is_open) VALUES ('{name}', true)")

    async def route(self, event_type: str = "*", **columns: object) -> int:
        columns = {"event_type": event_type, "target": "webhook", **columns}
        return await self._inserted("routes", columns)

    async def subscription(self, event_type: str = "*", **columns: object) -> int:
        columns = {
            "event_type": event_type,
            "callback_url": "https://example.com/",
            "active": True,
            "verified": True,
            **columns,
        }
        return await self._inserted("subscriptions", columns)

    async def events(self, count: int, event_type: str = "order.paid", domain: str = "default") -> list[int]:
        """So many of them, in one statement; their ids."""
        before = await self.last_id()
        values = ", ".join(f"('{event_type}', '{domain}', '{{\"n\": {n}}}')" for n in range(count))
        await self.sql(f"INSERT INTO events (event_type, event_domain, payload) VALUES {values}")
        return [row["id"] for row in await self.sql(f"SELECT id FROM events WHERE id > {before} ORDER BY id")]

    async def last_id(self) -> int:
        return int(await self.database.value("SELECT COALESCE(MAX(id), 0) FROM events"))

    async def drain(self, router: Router | None = None, steps: int = 200) -> Pass:
        """Steps until nothing more happens."""
        for _ in range(steps):
            done = await (router or self.router).step()
            if done.outcome is not Outcome.ROUTED:
                return done
        raise AssertionError(f"still routing after {steps} steps")

    async def attempts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.sql("SELECT * FROM route_attempts ORDER BY id")]

    async def statuses(self) -> Counter[str]:
        return Counter(attempt["status"] for attempt in await self.attempts())

    async def sagas(self) -> list[tuple[int, int]]:
        rows = await self.sql("SELECT event_id, subscription_id FROM webhook_delivery_sagas ORDER BY 1, 2")
        return [(row["event_id"], row["subscription_id"]) for row in rows]

    async def count(self, table: str) -> int:
        return int(await self.database.value(f"SELECT COUNT(*) FROM {table}"))

    async def cursor(self, worker: str = "default") -> dict[str, Any]:
        (row,) = await self.sql(f"SELECT * FROM route_worker_cursors WHERE worker_name = '{worker}'")
        return dict(row)

    async def holes(self, worker: str = "default") -> list[tuple[int, int]]:
        rows = await self.sql(f"SELECT lo, hi FROM route_holes WHERE worker_name = '{worker}' ORDER BY lo")
        return [(row["lo"], row["hi"]) for row in rows]

    async def _inserted(self, table: str, columns: dict[str, object]) -> int:
        values = ", ".join(_literal(value) for value in columns.values())
        await self.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")
        return int(await self.database.value(f"SELECT MAX(id) FROM {table}"))


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int) else f"'{value}'"
