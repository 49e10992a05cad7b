"""How subscriptions fare: what came of their attempts in the last day, how much waits, how wide their windows are."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.model.saga import SagaStatus
from tidings.model.totals import DURATIONS
from tidings.roles.observer.listing import Shown, dicts

SECONDS = 24 * 3600.0
COUNTED_TO, COUNTED_OF_ONE = 500, 1_000
# Of all attempts; those of one subscription are looked for among them.
WINDOW = 2_000
_MOST_CHECKS = 10
_WAITING = (SagaStatus.PENDING, SagaStatus.PENDING_RETRY)


@dataclass(frozen=True)
class Tally:
    """What came of attempts; `durations` counts them by the bounds that they kept."""

    delivered: int = 0
    failed: int = 0
    dead: int = 0
    durations: Mapping[str, int] = field(default_factory=dict)

    @property
    def attempts(self) -> int:
        return self.delivered + self.failed

    @property
    def success(self) -> float | None:
        """The share of attempts that went right; None if there were none."""
        return self.delivered / self.attempts if self.attempts else None

    @property
    def p95(self) -> float | None:
        """Within how many milliseconds 95 of 100 were answered, as the bound that they kept."""
        wanted, seen = 0.95 * sum(self.durations.values()), 0
        for name, bound in DURATIONS.items() if wanted else ():
            seen += self.durations.get(name, 0)
            if seen >= wanted:
                return bound
        return None


@dataclass(frozen=True)
class Backlog:
    """Open deliveries; none of the counts goes beyond `counted_to`."""

    pending: int = 0
    retrying: int = 0
    under_way: int = 0
    oldest_seconds: float = 0.0
    counted_to: int = COUNTED_TO

    @property
    def waiting(self) -> int:
        return self.pending + self.retrying

    @property
    def is_more(self) -> bool:
        return max(self.pending, self.retrying) >= self.counted_to


@dataclass(frozen=True)
class Health:
    """Without a lane nothing was learnt about the endpoint yet."""

    tally: Tally = Tally()
    backlog: Backlog = Backlog()
    lane: Shown | None = None


class HealthObserver(Operations):
    async def health(self, ids: Sequence[int], counted_to: int = COUNTED_TO) -> dict[int, Health]:
        if not ids:
            return {}
        tallies = {
            row["subscription_id"]: _tally(row)
            for row in await self._rows("health_among", ids=list(ids), seconds=SECONDS)
        }
        lanes = {row["subscription_id"]: dict(row) for row in await self._rows("lanes_among", ids=list(ids))}
        backlogs = await self._backlogs(ids, counted_to)
        return {id: Health(tallies.get(id, Tally()), backlogs[id], lanes.get(id)) for id in ids}

    async def hours(self, subscription_id: int) -> dict[datetime.datetime, Tally]:
        rows = await self._rows("hours_of_subscription", subscription_id=subscription_id, seconds=SECONDS)
        return {row["began_at"]: _tally(row) for row in rows}

    async def checks(self, subscription_id: int) -> list[Shown]:
        """The newest calls that people asked for; without an outcome one is still to be made."""
        rows = await self._rows("checks_of_subscription", subscription_id=subscription_id, limit=_MOST_CHECKS)
        return dicts(rows)

    async def attempts(self, subscription_id: int, limit: int) -> list[Shown]:
        """Its attempts among the newest `WINDOW` of all, the last first."""
        floor = await self._row("job_floor", window=WINDOW)
        if floor is None or floor["floor"] is None:
            return []
        rows = await self._rows(
            "attempts_of_subscription", subscription_id=subscription_id, floor=floor["floor"], limit=limit
        )
        return dicts(rows)

    async def deeds(self, subscription_id: int, limit: int) -> list[Shown]:
        rows = await self._rows("last_done_to", subject=f"subscription:{subscription_id}", limit=limit)
        return dicts(rows)

    async def _backlogs(self, ids: Sequence[int], counted_to: int) -> dict[int, Backlog]:
        rows = await self._rows("backlogs", lanes=[(id, counted_to) for id in ids])
        return {id: _backlog([row for row in rows if row["subscription_id"] == id], counted_to) for id in ids}


def _tally(row: Row) -> Tally:
    durations = {name: int(row[name]) for name in DURATIONS}
    return Tally(int(row["delivered"]), int(row["failed"]), int(row["dead"]), durations)


def _backlog(rows: Sequence[Row], counted_to: int) -> Backlog:
    count = {row["status"]: int(row["sagas"]) for row in rows}
    waits = [
        (row["now"] - row["oldest"]).total_seconds() for row in rows if row["oldest"] and row["status"] in _WAITING
    ]
    return Backlog(
        count.get(SagaStatus.PENDING, 0),
        count.get(SagaStatus.PENDING_RETRY, 0),
        count.get(SagaStatus.IN_PROGRESS, 0),
        max([0.0, *waits]),
        counted_to,
    )
