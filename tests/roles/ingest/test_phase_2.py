"""Seed 002, phase 2: a service that only inserts events."""

from tests.roles.ingest.events import event
from tests.support.database import Database
from tidings.roles.ingest.service import Ingest
from tidings.tables import tables_of

# Markers of writers are the log's own: its trigger writes them, and routers take them away.
NOT_COUNTED = {"event_writers"}


async def counts(engine: Database) -> dict[str, int]:
    tables = [name for name in tables_of(engine.family) if name not in NOT_COUNTED]
    return {table: await engine.value(f"SELECT COUNT(*) FROM {table}") for table in tables}


async def test_publishing_inserts_events_and_nothing_else(ingest: Ingest, engine: Database) -> None:
    """Phase 2: "only does: INSERT into events with immutable JSON payload"."""
    before = await counts(engine)
    await ingest.publish([event("1"), event("2", "known")])
    await ingest.publish([event("2", "known")])
    after = await counts(engine)
    assert {table: after[table] - before[table] for table in after if after[table] != before[table]} == {"events": 2}
