"""What the overview shows besides depths: what came of attempts, span by span, and whose endpoints fail most."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass

from tidings.model.totals import OUTCOMES
from tidings.roles.observer.listing import END, Shown, dicts
from tidings.roles.observer.operations import ObserverOperations

Moment = datetime.datetime


@dataclass(frozen=True)
class Flow:
    """Counts of each span that has any, by a moment in it, as `OUTCOMES` has them; `now` is the database's."""

    counts: Mapping[Moment, tuple[int, ...]]
    now: Moment


class FlowObserver(ObserverOperations):
    async def flow(self, minutes: int, each: int) -> Flow:
        """The last `minutes` in spans of `each`, which is a part of an hour; the last span is the one under way."""
        now = await self.server_clock()
        rows = await self._rows("spans_of_all", since=_first_of(now, minutes, each), each=each)
        return Flow({row["began_at"]: tuple(int(row[name]) for name in OUTCOMES) for row in rows}, now)

    async def failing(self, seconds: float, most: int) -> list[Shown]:
        """Those with the most failed attempts, with what is known of their endpoints."""
        return dicts(await self._rows("failing_most", seconds=seconds, most=most))

    async def last_event(self) -> Shown | None:
        rows = await self._rows("events_before", before=END, limit=1)
        return dict(rows[0]) if rows else None


def _first_of(now: Moment, minutes: int, each: int) -> Moment:
    """Where the first span begins. A moment more would be of a span whose place in the table is used again."""
    first = now - datetime.timedelta(minutes=minutes - each)
    return datetime.datetime.fromtimestamp(first.timestamp() // (60 * each) * 60 * each, datetime.UTC)
