"""Compares the two sides of the ledger, a range of events at a time.

Each comparison is one statement and sees one moment, so that a system at work adds up too.
"""

import datetime
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial

from tidings.db.engine import Engine
from tidings.db.operations import Operations
from tidings.decisions import reconciling
from tidings.model.ledger import Difference, Ledger
from tidings.roles.observer.listing import EVER, NEVER

EVENTS_AT_ONCE = 2_000
_MOST_TASKS = 1_000

Moment = datetime.datetime


class LedgerObserver(Operations):
    async def range_of(self, since: Moment | None, until: Moment | None) -> tuple[int, int]:
        """The ids to look at; the first is above the last if there are none."""
        if since is None and until is None:
            row = await self._row("recorded_range")
        else:
            row = await self._row("range_of_time", since=since or EVER, until=until or NEVER)
        return (row["lo"], row["hi"]) if row and row["lo"] is not None else (1, 0)

    async def add(self, ledger: Ledger, lo: int, hi: int) -> None:
        """What stands about these events."""
        sides: dict[str, Counter[str]] = {"event": Counter(), "wanted": Counter(), "delivery": Counter()}
        for row in await self._rows("tally", lo=lo, hi=hi):
            sides[row["side"]][row["fate"]] += int(row["n"])
        found = await self._differences(lo, hi)
        # Nothing of it counts unless all of it was read: a step may be run again.
        ledger.events += sides["event"]
        ledger.wanted += sides["wanted"]
        ledger.deliveries += sides["delivery"]
        ledger.differences += found

    async def _differences(self, lo: int, hi: int) -> list[Difference]:
        return [
            *reconciling.sagas_missing_or_too_many(await self._rows("unequal_sagas", lo=lo, hi=hi)),
            *reconciling.sagas_contradicted(await self._rows("uneven_sagas", lo=lo, hi=hi)),
            *reconciling.strays(await self._rows("strays", lo=lo, hi=hi)),
            *reconciling.tasks_missing(await self._rows("missing_tasks", lo=lo, hi=hi)),
        ]

    async def removed(self) -> Counter[str]:
        row = await self._row("removed")
        return Counter({name: int(count) for name, count in (row or {}).items() if count})

    async def doubled_tasks(self) -> list[Difference]:
        return [*reconciling.tasks_doubled(await self._rows("doubled_tasks", after=0, limit=_MOST_TASKS))]


async def reconcile(
    engine: Engine, since: Moment | None = None, until: Moment | None = None, at_once: int = EVENTS_AT_ONCE
) -> AsyncIterator[Ledger]:
    """Yields the same ledger after each part of it; the last one is whole."""
    lo, hi = await LedgerObserver.step(engine, lambda observer: observer.range_of(since, until))
    ledger = Ledger(lo, hi)
    ledger.removed = await LedgerObserver.step(engine, LedgerObserver.removed)
    ledger.differences += await LedgerObserver.step(engine, LedgerObserver.doubled_tasks)
    yield ledger
    for start in range(lo, hi + 1, at_once):
        end = min(start + at_once - 1, hi)
        await LedgerObserver.step(engine, partial(LedgerObserver.add, ledger=ledger, lo=start, hi=end))
        yield ledger
