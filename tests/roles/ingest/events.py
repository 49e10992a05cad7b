"""Events to be published, and what the log holds of them."""

import itertools
from typing import Any

from tests.support.database import Database
from tidings.model.event import NewEvent

_numbers = itertools.count(1)


def event(payload: str = "{}", external_id: str | None = None, **more: str) -> NewEvent:
    fields = {"event_type": "a", "event_domain": "default", "event_stream": "", **more}
    return NewEvent(payload=payload, external_id=external_id, correlation_id=f"c{next(_numbers)}", **fields)


def bad_event(payload: str = "{}", external_id: str | None = None) -> NewEvent:
    """One that every database refuses, and that only a mistake of ours could let through."""
    return event(payload, external_id, event_type="not visible")


async def stored(engine: Database) -> dict[int, dict[str, Any]]:
    rows = await engine.sql("SELECT * FROM events ORDER BY id", "observer")
    return {row["id"]: dict(row) for row in rows}
