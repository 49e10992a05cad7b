"""An installation with open gates and routes, events in it, and routers: what the tests of routing start from."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.sessions import Session, connect
from tidings.db.engine import Engine, open_engine
from tidings.db.statements import Statement
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
    _engines: list[Engine] = field(default_factory=list)
    _asking: dict[str, Engine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._routers.append(self.router)

    async def sql(self, text: str, role: str = OWNER) -> Sequence[Any]:
        """One text in a transaction of its own; the connection is kept for the next."""
        if role not in self._asking:
            self._asking[role] = await self.database.open(role, size=1)
        statement = Statement("test.sql", text.replace("{", "{{").replace("}", "}}"), ())
        return await self._asking[role].step(lambda transaction: transaction.rows(statement))

    async def value(self, text: str) -> Any:
        ((value,),) = [row.values() for row in await self.sql(text)]
        return value

    async def engine(self, proxy: FaultProxy | None = None, **options: Any) -> Engine:
        """The router's own login; by way of a proxy that counts."""
        if proxy is None:
            return await self.database.open("event_router", **options)
        url = proxy.url(self.database.url("event_router"))
        engine = await open_engine(url, owner="event_router", names=self.database.names, **options)
        self._engines.append(engine)
        return engine

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
        for engine in self._engines:
            await engine.close()

    async def open_gates(self, worker: str = "default") -> None:
        have = {row["name"] for row in await self.sql("SELECT name FROM gates")}
        for name in {"routing", f"router:{worker}"} - have:
            await self.sql(f"INSERT INTO gates (name, is_open) VALUES ('{name}', true)")

    async def set_gate(self, name: str, is_open: bool) -> None:
        await self.sql(f"UPDATE gates SET is_open = {str(is_open).lower()} WHERE name = '{name}'")

    async def route(self, event_type: str = "*", **columns: object) -> int:
        columns = {"event_type": event_type, "target": "webhook", **columns}
        return await self._inserted("routes", columns)

    async def change_route(self, id: int, **columns: object) -> None:
        changes = ", ".join(f"{name} = {_literal(value)}" for name, value in columns.items())
        await self.sql(f"UPDATE routes SET {changes} WHERE id = {id}")

    async def subscription(self, event_type: str = "*", **columns: object) -> int:
        columns = {
            "event_type": event_type,
            "callback_url": "https://example.com/",
            "active": True,
            "verified": True,
            **columns,
        }
        return await self._inserted("subscriptions", columns)

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
        return await self._inserted("events", {"event_type": event_type, "payload": "{}", **columns})

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

    async def _inserted(self, table: str, columns: dict[str, object]) -> int:
        values = ", ".join(_literal(value) for value in columns.values())
        await self.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")
        return int(await self.value(f"SELECT MAX(id) FROM {table}"))


def _literal(value: object) -> str:
    if isinstance(value, bool | int):
        return str(value).lower()
    return "'{}'".format(str(value).replace("'", "''"))
