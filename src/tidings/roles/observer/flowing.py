"""What the overview shows besides depths: what came of attempts, minute by minute, and whose endpoints fail most."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidings.db.operations import Operations
from tidings.model.totals import OUTCOMES

Shown = Mapping[str, Any]
Moment = datetime.datetime


@dataclass(frozen=True)
class Minutes:
    """Counts of each minute in which there were any, as `OUTCOMES` has them; `now` is the database's."""

    counts: Mapping[Moment, tuple[int, ...]]
    now: Moment


class FlowObserver(Operations):
    """Its statements are the observer's own."""

    async def minutes(self, seconds: float) -> Minutes:
        clock = await self._row("server_clock")
        assert clock is not None
        rows = await self._rows("minutes_of_all", seconds=seconds)
        return Minutes({row["began_at"]: tuple(int(row[name]) for name in OUTCOMES) for row in rows}, clock["now"])

    async def failing(self, seconds: float, most: int) -> list[Shown]:
        """Those with the most failed attempts, with what is known of their endpoints."""
        return [dict(row) for row in await self._rows("failing_most", seconds=seconds, most=most)]

    async def last_event(self) -> Shown | None:
        rows = await self._rows("events_before", before=2**63 - 1, limit=1)
        return dict(rows[0]) if rows else None
