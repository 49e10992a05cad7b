"""Where to begin looking, so that rows which were dealt with are not passed again while the server still keeps them.

Once a second everything looks from the beginning: a hint is never the only way. Where that takes long, since somebody
holds an old transaction open, it is done so seldom that it takes a tenth of the time.
"""

import datetime
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from tidings.model.saga import SagaStatus
from tidings.roles.orchestrator.operations import DueSaga, Moment

EPOCH = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
SLACK = datetime.timedelta(seconds=5)
# A transaction that takes longer than this between its first saga and its commit is found by the next sweep.
SLACK_OF_NEWS = datetime.timedelta(seconds=0.25)
SECONDS_BETWEEN_SWEEPS = 1.0
_PART_FOR_SWEEPS = 0.1


@dataclass(frozen=True)
class Since:
    """Due times from which on to look, for first attempts and for retries."""

    pending: Moment = EPOCH
    retry: Moment = EPOCH

    def moved(self, status: SagaStatus, since: Moment) -> "Since":
        if status is SagaStatus.PENDING:
            return Since(max(self.pending, since), self.retry)
        return Since(self.pending, max(self.retry, since))


class Mark(NamedTuple):
    """How far there was anything at a moment: what came since has a higher id, or its time came later."""

    saga: int
    moment: Moment


@dataclass
class Hints:
    """From where on: results by the id of their `job`, `active` jobs by the end of their leases, `windows` by their
    last change, due sagas by the `Since` of their lane."""

    job: int = 0
    active: Moment = EPOCH
    windows: Moment = EPOCH
    lanes: dict[int, Since] = field(default_factory=dict)
    # Lanes in which nothing is due but what is news.
    empty: frozenset[int] = frozenset()
    # News begin behind the first; it is replaced by the second when that is old enough for what came late.
    _marks: tuple[Mark, Mark] | None = None
    _is_sweep: bool = False
    _next_sweep: float = float("-inf")

    @contextmanager
    def swept_if_time(self) -> Iterator[None]:
        """A block that looks from the beginning, if it is time for that."""
        started = time.monotonic()
        if started < self._next_sweep:
            yield
            return
        self.job, self.active, self.lanes, self.empty = 0, EPOCH, {}, frozenset()
        self._is_sweep = True
        try:
            yield
        finally:
            self._is_sweep = False
            took = time.monotonic() - started
            self._next_sweep = started + max(SECONDS_BETWEEN_SWEEPS, took / _PART_FOR_SWEEPS)

    @property
    def news_behind(self) -> Mark | None:
        """None: from the beginning."""
        return None if self._is_sweep or self._marks is None else self._marks[0]

    def saw_active(self, oldest: Moment | None, now: Moment) -> None:
        self.active = min(oldest or now, now) - SLACK
        self.windows = now - SLACK

    def saw_news(self, newest: Mark) -> None:
        """`newest` is how far there was anything before one looked."""
        first, second = self._marks or (newest, newest)
        self._marks = (second, newest) if newest.moment - second.moment >= SLACK_OF_NEWS else (first, second)

    def started(self, sagas: Iterable[DueSaga]) -> None:
        for saga in sagas:
            since = self.lanes.get(saga.subscription_id, Since())
            self.lanes[saga.subscription_id] = since.moved(saga.status, saga.next_attempt_at - SLACK)

    def emptied(self, lanes: Iterable[int], now: Moment) -> None:
        """Nothing that was due in them is left."""
        for lane in lanes:
            self.lanes[lane] = Since(now - SLACK, now - SLACK)
