"""Counts what came of attempts: of each subscription by hour, of all together by minute."""

import datetime
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from tidings.decisions.advancing import Advance, Buried, Completed, Ignored
from tidings.model.totals import ALL_TOGETHER, DURATIONS, Total, TotalOf

_NAMES, _BOUNDS = tuple(DURATIONS), tuple(DURATIONS.values())


class Tallied(NamedTuple):
    """One result, or with `is_attempt` false a delivery that was given up without one."""

    subscription_id: int
    outcome: Advance
    duration_ms: int | None = None
    is_attempt: bool = True


def tally(results: Iterable[Tallied], now: datetime.datetime) -> list[TotalOf]:
    """In the order of their keys, in which everybody writes them: so nobody waits in a circle."""
    minute = now.replace(second=0, microsecond=0)
    hour = minute.replace(minute=0)
    totals: dict[int, Total] = defaultdict(Total)
    for one in results:
        if not isinstance(one.outcome, Ignored):
            _add(totals[one.subscription_id], one)
    if not totals:
        return []
    together = TotalOf(ALL_TOGETHER, minute, _sum(totals.values()))
    return [together, *(TotalOf(id, hour, total) for id, total in sorted(totals.items()))]


def _add(total: Total, one: Tallied) -> None:
    total.dead += isinstance(one.outcome, Buried)
    if not one.is_attempt:
        return
    total.delivered += isinstance(one.outcome, Completed)
    total.failed += not isinstance(one.outcome, Completed)
    if one.duration_ms is not None:
        total.durations[bound_of(one.duration_ms)] += 1


def _sum(totals: Iterable[Total]) -> Total:
    summed = Total()
    for one in totals:
        summed.delivered += one.delivered
        summed.failed += one.failed
        summed.dead += one.dead
        for name, count in one.durations.items():
            summed.durations[name] += count
    return summed


def bound_of(duration_ms: float) -> str:
    return _NAMES[bisect_left(_BOUNDS, duration_ms)]
