"""How many sagas of each lane may start: lanes are served in turn, and each has a window that follows its results."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tidings.model.lane import Moment

LANES_AT_ONCE = 64
# Those that only fail have turns of their own, so that they take none from the others.
FAILING_LANES_AT_ONCE = 16
LEAST_SHARE = 8
# Of lanes that only fail so many get an attempt in one step: what they cost the others does not grow with them.
PROBES_AT_ONCE = 4
FAILURES_THAT_HALVE = 8
# A lane that did nothing for so long learns its window anew: what has gathered meanwhile is no burst.
SECONDS_UNTIL_RELEARNT = 60.0


@dataclass(frozen=True)
class FlowLimits:
    """Active jobs of all lanes together; and of one of them, at first and at most."""

    active_jobs_max: int
    window_start: int
    window_max: int


class Window(NamedTuple):
    """How many jobs of a lane may be active. `failures` are those in a row; the rest counts results of this round.

    A round is as many results as the window has places. Eight failures in a row halve it and end the round early.
    """

    size: int
    failures: int = 0
    failed_at: Moment | None = None
    error_code: str | None = None
    good: int = 0
    bad: int = 0

    @property
    def is_probing(self) -> bool:
        """One attempt at a time, to see whether the endpoint is back."""
        return self.size == 1 and self.failures > 0

    @property
    def shared(self) -> "Window":
        """What others are told of it."""
        return self._replace(good=0, bad=0)


def after_success(window: Window, was_limit: bool, limits: FlowLimits) -> Window:
    """`was_limit`: all places were taken, and more would have been."""
    return _counted(window._replace(failures=0, good=window.good + 1), was_limit, limits)


def after_failure(window: Window, at: Moment, error_code: str, was_limit: bool, limits: FlowLimits) -> Window:
    failed = window._replace(failures=window.failures + 1, failed_at=at, error_code=error_code, bad=window.bad + 1)
    return _counted(failed, was_limit, limits)


def _counted(window: Window, was_limit: bool, limits: FlowLimits) -> Window:
    results = window.good + window.bad
    is_down = min(window.failures, results) >= FAILURES_THAT_HALVE
    if results < window.size and not is_down:
        return window
    size = window.size
    if is_down or 2 * window.bad > results:
        size = max(1, size // 2)
    elif 4 * window.bad <= results and (was_limit or size < limits.window_start):
        size = min(2 * size, limits.window_max)
    return window._replace(size=size, good=0, bad=0)


def rested(window: Window, idle_seconds: float, limits: FlowLimits) -> Window:
    """After a long hold, or a long time without work, it is no wider than at first."""
    if idle_seconds < SECONDS_UNTIL_RELEARNT or window.size <= limits.window_start:
        return window
    return window._replace(size=limits.window_start, good=0, bad=0)


def merged(own: Window, base: Window, shared: Window, limits: FlowLimits) -> Window:
    """What several have learnt: `own` since `base` was known to all, others meanwhile `shared`.

    Moves of all count, as factors. Of the failures the row goes on, unless we have seen it end.
    """
    size = max(1, min(shared.size * own.size // base.size, limits.window_max))
    failures = own.failures
    if own.failures >= base.failures:
        failures += shared.failures - base.failures
    last = max(own, shared, key=lambda one: one.failed_at.timestamp() if one.failed_at else 0.0)
    return own._replace(size=size, failures=max(0, failures), failed_at=last.failed_at, error_code=last.error_code)


def next_turn(lanes: Sequence[int], last: int, most: int = LANES_AT_ONCE) -> list[int]:
    """The lanes after the last that had its turn, and from the beginning again. `lanes` ascend."""
    start = bisect_right(lanes, last)
    return [*lanes[start : start + most], *lanes[: min(start, most)]][:most]


def lanes_to_serve(turn: Sequence[int], news: Iterable[int], allowed: Container[int]) -> list[int]:
    """Those with news first, then those whose turn it is; each once."""
    first = [lane for lane in dict.fromkeys(news) if lane in allowed][:LANES_AT_ONCE]
    return list(dict.fromkeys([*first, *turn]))


def free_room(active: Mapping[int, int], limits: FlowLimits, batch: int) -> int:
    """How many may start at all."""
    return max(0, min(batch, limits.active_jobs_max - sum(active.values())))


def rooms(windows: Mapping[int, int], active: Mapping[int, int], free: int) -> dict[int, int]:
    """How many of each of these lanes are looked at; a lane whose window is full has no room."""
    if free <= 0 or not windows:
        return {}
    share = min(free, max(LEAST_SHARE, -(-free // len(windows))))
    found = {lane: min(share, window - active.get(lane, 0)) for lane, window in windows.items()}
    return {lane: room for lane, room in found.items() if room > 0}


def probed(due: Mapping[int, Sequence[int]], probing: Mapping[int, Window]) -> dict[int, Sequence[int]]:
    """Without the lanes that only fail, but for the few of them that failed the longest ago."""
    failing = sorted(
        (window.failed_at.timestamp() if window.failed_at else 0.0, lane)
        for lane, window in probing.items()
        if due.get(lane)
    )
    put_off = {lane for _, lane in failing[PROBES_AT_ONCE:]}
    return {lane: sagas for lane, sagas in due.items() if lane not in put_off}


def taken_in_turn(due: Mapping[int, Sequence[int]], free: int) -> list[int]:
    """One of each lane, then the next of each, until `free` are taken."""
    taken: list[int] = []
    depth = 0
    while len(taken) < free:
        layer = [sagas[depth] for sagas in due.values() if depth < len(sagas)]
        if not layer:
            break
        taken += layer[: free - len(taken)]
        depth += 1
    return taken
