"""Counts what came of attempts: of each subscription by hour, of all together by minute."""

import datetime
from collections.abc import Iterable
from dataclasses import dataclass

from tidings.decisions.advancing import Advance, Buried, Completed, Ignored
from tidings.model.totals import ALL_TOGETHER, DURATIONS, Total, TotalOf


@dataclass(frozen=True)
class Tallied:
    """One result, or with `is_attempt` false a delivery that was given up without one."""

    subscription_id: int
    outcome: Advance
    duration_ms: int | None = None
    is_attempt: bool = True


def tally(results: Iterable[Tallied], now: datetime.datetime) -> list[TotalOf]:
    """In the order of their keys, in which everybody writes them: so nobody waits in a circle."""
    minute = now.replace(second=0, microsecond=0)
    hour = minute.replace(minute=0)
    totals: dict[int, Total] = {}
    for one in results:
        if not isinstance(one.outcome, Ignored):
            for subscription_id in (ALL_TOGETHER, one.subscription_id):
                _add(totals.setdefault(subscription_id, Total()), one)
    return [TotalOf(id, hour if id else minute, total) for id, total in sorted(totals.items())]


def _add(total: Total, one: Tallied) -> None:
    total.dead += isinstance(one.outcome, Buried)
    if not one.is_attempt:
        return
    total.delivered += isinstance(one.outcome, Completed)
    total.failed += not isinstance(one.outcome, Completed)
    if one.duration_ms is not None:
        total.durations[bound_of(one.duration_ms)] += 1


def bound_of(duration_ms: float) -> str:
    return next(name for name, bound in DURATIONS.items() if duration_ms <= bound)
