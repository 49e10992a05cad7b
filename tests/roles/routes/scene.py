"""What the tests of route_admin have in common: events, routers and holes, and reading back what was audited."""

import json
from typing import Any

from tests.support.database import Database
from tidings.model.route import Route, RouteTarget

ACTOR = "cli:nora"


def webhook(event_type: str, **changes: Any) -> Route:
    anywhere = {"event_domain": "*", "event_stream": "*", "target": RouteTarget.WEBHOOK}
    return Route(id=0, event_type=event_type, **{**anywhere, **changes})


async def audited(engine: Database) -> list[tuple[str, str, str, Any]]:
    """Actor, action, subject and detail of everything in the audit log."""
    rows = await engine.sql("SELECT actor, action, subject, detail FROM audit_log ORDER BY id")
    return [(row["actor"], row["action"], row["subject"], json.loads(row["detail"])) for row in rows]


async def stored(engine: Database, table: str, order: str = "1") -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql(f"SELECT * FROM {table} ORDER BY {order}")]


async def publish(engine: Database, count: int) -> list[dict[str, Any]]:
    """Writes events and returns the whole log."""
    for number in range(count):
        await engine.sql(
            f"INSERT INTO events (event_type, payload) VALUES ('order.paid', '{number}')", role="event_ingest_writer"
        )
    return await stored(engine, "events")


async def make_router(engine: Database, name: str = "default", domain: str = "*", position: int = 0) -> None:
    """A router that stands at an event, and knows it."""
    await engine.sql(
        "INSERT INTO route_worker_cursors (worker_name, event_domain, position, last_event_id,"
        " last_event_correlation_id, last_event_created_at)"
        f" SELECT '{name}', '{domain}', {position}, e.id, e.correlation_id, e.created_at"
        f" FROM (SELECT {position} AS place) p LEFT JOIN events e ON e.id = p.place",
        role="admin",
    )


async def make_hole(engine: Database, lo: int, hi: int, name: str = "default") -> None:
    await engine.sql(
        "INSERT INTO route_holes (worker_name, lo, hi, seen_at)"
        f" VALUES ('{name}', {lo}, {hi}, '2026-01-02 03:04:05.678901')",
        role="admin",
    )


async def holes(engine: Database, name: str = "default") -> list[tuple[int, int, str]]:
    rows = await stored(engine, "route_holes", "worker_name, lo")
    return [(row["lo"], row["hi"], f"{row['seen_at']:%f}") for row in rows if row["worker_name"] == name]


async def cursor(engine: Database, name: str = "default") -> dict[str, Any]:
    (found,) = [row for row in await stored(engine, "route_worker_cursors") if row["worker_name"] == name]
    return found


async def rolled_back(engine: Database, role: str, text: str) -> None:
    """A transaction that does something and undoes it."""
    login = await engine.open(role)
    async with login.bare_session() as session:
        for command in (login.dialect.begin, text, "ROLLBACK"):
            await session.command(command)
