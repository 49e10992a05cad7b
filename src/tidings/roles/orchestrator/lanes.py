"""What one orchestrator knows of the windows: each result moves one, and several orchestrators tell each other.

What this one has learnt is written seldom and together; what others have learnt comes with the count of active jobs.
"""

from collections.abc import Iterable, Mapping, Sequence

from tidings.decisions.advancing import UNKNOWN_ERROR, Completed, Ignored
from tidings.decisions.pacing import FlowLimits, Window, after_failure, after_success, merged, rested
from tidings.roles.orchestrator.applying import Applied
from tidings.roles.orchestrator.operations import LaneRow, Moment
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import EndpointDown, EndpointUp


class Lanes:
    def __init__(self, limits: FlowLimits) -> None:
        self._limits = limits
        self._first = Window(limits.window_start)
        self._own: dict[int, Window] = {}
        self._base: dict[int, Window] = {}
        self._moved: set[int] = set()
        self._used_at: dict[int, Moment] = {}
        self._crowded: frozenset[int] = frozenset()

    def window(self, lane: int) -> Window:
        return self._own.get(lane, self._first)

    def sizes(self, lanes: Iterable[int]) -> dict[int, int]:
        return {lane: self.window(lane).size for lane in lanes}

    def full(self, active: Mapping[int, int]) -> frozenset[int]:
        return frozenset(lane for lane, jobs in active.items() if jobs >= self.window(lane).size)

    def probing(self, lanes: Iterable[int]) -> dict[int, Window]:
        found = {lane: self.window(lane) for lane in lanes}
        return {lane: window for lane, window in found.items() if window.is_probing}

    def took_in(self, applied: Sequence[Applied], active: Mapping[int, int], now: Moment) -> None:
        """`active` are the jobs that there were until then."""
        limited: dict[int, bool] = {}
        before: dict[int, Window] = {}
        for one in applied:
            if isinstance(one.outcome, Ignored):
                continue
            result, lane = one.job.result, one.job.result.subscription_id
            window = self.window(lane)
            if lane not in before:
                before[lane] = window
                limited[lane] = active.get(lane, 0) >= window.size and lane not in self._crowded
            if isinstance(one.outcome, Completed):
                self._own[lane] = after_success(window, limited[lane], self._limits)
            else:
                code = result.error_code or UNKNOWN_ERROR
                self._own[lane] = after_failure(window, now, code, limited[lane], self._limits)
        self._moved |= before.keys()
        self._used_at.update(dict.fromkeys(before, now))
        for lane, window in before.items():
            _announce(lane, window, self._own[lane])

    def saw(self, known: Iterable[LaneRow], active: Iterable[int], crowded: Iterable[int], now: Moment) -> None:
        """What others wrote lately, who has jobs, and whose jobs workers gave back since they had too many of them."""
        for lane, window, updated_at in known:
            if lane not in self._moved and window != self._base.get(lane):
                self._take_over(lane, window)
            self._used_at.setdefault(lane, updated_at)
        self._used_at.update(dict.fromkeys(active, now))
        self._crowded = frozenset(crowded)
        for lane, window in self._own.items():
            learnt = rested(window, (now - self._used_at.setdefault(lane, now)).total_seconds(), self._limits)
            if learnt is not window:
                self._own[lane] = learnt
                self._moved.add(lane)

    def to_tell(self) -> list[int]:
        """The lanes of which the others do not know yet, ascending."""
        self._moved = {lane for lane in self._moved if self.window(lane).shared != self._base.get(lane, self._first)}
        return sorted(self._moved)

    def merged(self, lane: int, shared: Window | None) -> Window:
        base = self._base.get(lane, self._first)
        return merged(self.window(lane), base, shared or base, self._limits)

    def told(self, windows: Mapping[int, Window]) -> None:
        for lane, window in windows.items():
            self._take_over(lane, window)
        self._moved -= windows.keys()

    def _take_over(self, lane: int, window: Window) -> None:
        """The round that is under way goes on."""
        own = self.window(lane)
        size = min(window.size, self._limits.window_max)
        self._own[lane] = window._replace(size=size, good=own.good, bad=own.bad)
        self._base[lane] = window.shared


def _announce(lane: int, before: Window, after: Window) -> None:
    if before.size > 1 and after.is_probing:
        tell(EndpointDown(lane, after.failures, after.error_code or UNKNOWN_ERROR))
    elif before.is_probing and not after.is_probing:
        tell(EndpointUp(lane, before.failures))
