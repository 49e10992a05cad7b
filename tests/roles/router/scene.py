"""An installation with open gates and routes, events in it, and routers: what the tests of routing start from."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.rows import insert, insert_subscription, literal
from tests.support.sessions import Session, connect
from tidings.db.engine import Engine
from tidings.flow import OWNER
from tidings.roles.router.passes import Outcome, Pass
from tidings.roles.router.router import Router
from tidings.tables import tables_of

# More than one row can be inserted into at once; each statement stays well below what servers accept.
_ROWS_AT_ONCE = 5_000


@dataclass
class Scene:
    """The database through the owner's eyes, and the router `default`."""

    database: Database
    router: Router
    _routers: list[Router] = field(default_factory=list)
    _sessions: list[Session] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._routers.append(self.router)

    async def sql(self, text: str, role: str = OWNER) -> Sequence[Any]:
        return await self.database.sql(text, role)

    async def value(self, text: str) -> Any:
        return await self.database.value(text)

    async def engine(self, proxy: FaultProxy | None = None, **options: Any) -> Engine:
        """The router's own login; by way of a proxy that counts."""
        return await self.database.open("event_router", proxy, **options)

    async def new_router(self, name: str = "default", engine: Engine | None = None, **options: Any) -> Router:
        router = Router(engine or await self.engine(), name, **options)
        self._routers.append(router)
        return router

    async def session(self, role: str = OWNER) -> Session:
        """A session of one's own, for transactions that stay open."""
        session = await connect(self.database.admin_url if role == "admin" else self.database.url(role))
        self._sessions.append(session)
        return session

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        for router in self._routers:
            await router.close()

    @asynccontextmanager
    async def without_right(self, verb: str, table: str) -> AsyncIterator[None]:
        """Routers can't do this to the table. Only in an installation that may be damaged."""
        names = self.database.names
        quote = '"' if self.database.family == "postgresql" else "`"
        right, group = f"{verb} ON {names.schema}.{table}", f"{quote}{names.group('event_router')}{quote}"
        await self.sql(f"REVOKE {right} FROM {group}", role="admin")
        yield
        await self.sql(f"GRANT {right} TO {group}", role="admin")

    async def open_gates(self, worker: str = "default") -> None:
        have = {row["name"] for row in await self.sql("SELECT name FROM gates")}
        for name in {"routing", f"router:{worker}"} - have:
            await self.sql(f"INSERT INTO gates (name, is_open) VALUES ('{name}', true)")

    async def set_gate(self, name: str, is_open: bool) -> None:
        await self.sql(f"UPDATE gates SET is_open = {str(is_open).lower()} WHERE name = '{name}'")

    async def route(self, event_type: str = "*", **columns: object) -> int:
        return await insert(self.database, "routes", event_type=event_type, **{"target": "webhook", **columns})

    async def change_route(self, id: int, **columns: object) -> None:
        changes = ", ".join(f"{name} = {literal(value)}" for name, value in columns.items())
        await self.sql(f"UPDATE routes SET {changes} WHERE id = {id}")

    async def subscription(self, event_type: str = "*", **columns: object) -> int:
        return await insert_subscription(self.database, event_type=event_type, **columns)

    async def subscriptions(self, count: int) -> None:
        values = ", ".join(["('*', 'https://example.com/', true, true)"] * count)
        await self.sql(f"INSERT INTO subscriptions (event_type, callback_url, active, verified) VALUES {values}")

    async def events(self, count: int, event_type: str = "order.paid", domain: str = "default") -> list[int]:
        """So many of them, in one statement; their ids."""
        before = await self.last_id()
        for start in range(0, count, _ROWS_AT_ONCE):
            some = range(start, min(count, start + _ROWS_AT_ONCE))
            values = ", ".join(f"('{event_type}', '{domain}', '{{\"n\": {n}}}')" for n in some)
            await self.sql(f"INSERT INTO events (event_type, event_domain, payload) VALUES {values}")
        return [row["id"] for row in await self.sql(f"SELECT id FROM events WHERE id > {before} ORDER BY id")]

    async def event(self, event_type: str = "order.paid", **columns: object) -> int:
        return await insert(self.database, "events", event_type=event_type, **{"payload": "{}", **columns})

    async def last_id(self) -> int:
        return int(await self.value("SELECT COALESCE(MAX(id), 0) FROM events"))

    async def drain(self, router: Router | None = None, steps: int = 200) -> Pass:
        """Steps until nothing more happens."""
        for _ in range(steps):
            done = await (router or self.router).step()
            if done.outcome is not Outcome.ROUTED:
                return done
        raise AssertionError(f"still routing after {steps} steps")

    async def rewind(self, worker: str = "default") -> None:
        """Everything again: the cursor as if it had never moved."""
        await self.sql(f"DELETE FROM route_holes WHERE worker_name = '{worker}'")
        await self.sql(
            "UPDATE route_worker_cursors SET position = 0, last_event_id = NULL, last_event_correlation_id = NULL,"
            f" last_event_created_at = NULL WHERE worker_name = '{worker}'"
        )

    async def attempts(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.sql("SELECT * FROM route_attempts ORDER BY id")]

    async def decided(self) -> list[tuple[int, str, int]]:
        """Event, status and number of each attempt, in order."""
        return [(one["event_id"], one["status"], one["attempt_no"]) for one in await self.attempts()]

    async def statuses(self) -> Counter[str]:
        rows = await self.sql("SELECT status, COUNT(*) AS number FROM route_attempts GROUP BY status")
        return Counter({row["status"]: row["number"] for row in rows})

    async def sagas(self) -> list[tuple[int, int]]:
        rows = await self.sql("SELECT event_id, subscription_id FROM webhook_delivery_sagas ORDER BY 1, 2")
        return [(row["event_id"], row["subscription_id"]) for row in rows]

    async def tasks(self) -> list[tuple[str, str]]:
        rows = await self.sql("SELECT biz_type, biz_key FROM sys_pending_tasks ORDER BY 1, id")
        return [(row["biz_type"], row["biz_key"]) for row in rows]

    async def letters(self) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.sql("SELECT * FROM route_dead_letters ORDER BY id")]

    async def audited(self) -> list[tuple[str, str, Any]]:
        rows = await self.sql("SELECT action, subject, detail FROM audit_log ORDER BY id")
        return [(row["action"], row["subject"], json.loads(row["detail"])) for row in rows]

    async def count(self, table: str) -> int:
        return int(await self.value(f"SELECT COUNT(*) FROM {table}"))

    async def everything(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows of all tables: what a step that writes nothing leaves as it was."""
        session = await self.session()
        return {table: await session.run(f"SELECT * FROM {table}") for table in tables_of(self.database.family)}

    async def late_writer(self, *columns: str) -> Session:
        """A transaction that has drawn ids and not committed yet: one for each `'type', 'domain'` that is given."""
        session = await self.session()
        await session.run("BEGIN")
        values = ", ".join(f"({one}, '{{}}')" for one in columns or ("'late', 'default'",))
        await session.run(f"INSERT INTO events (event_type, event_domain, payload) VALUES {values}")
        return session

    async def cursor(self, worker: str = "default") -> dict[str, Any]:
        (row,) = await self.sql(f"SELECT * FROM route_worker_cursors WHERE worker_name = '{worker}'")
        return dict(row)

    async def holes(self, worker: str = "default") -> list[tuple[int, int]]:
        rows = await self.sql(f"SELECT lo, hi FROM route_holes WHERE worker_name = '{worker}' ORDER BY lo")
        return [(row["lo"], row["hi"]) for row in rows]
