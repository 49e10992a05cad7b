"""What came of attempts in a span of time: the counts that charts and health are made of."""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

OUTCOMES = ("delivered", "failed", "dead")

# How long an endpoint took, by the first of these that it kept; in milliseconds.
DURATIONS: Mapping[str, float] = {
    "within_100ms": 100,
    "within_300ms": 300,
    "within_1s": 1_000,
    "within_3s": 3_000,
    "within_10s": 10_000,
    "slower": float("inf"),
}
ALL_TOGETHER = 0
"""Stands in the place of a subscription, where all are counted together, by minute; each by itself is by hour."""
SLOTS = 16
"""Each orchestrator adds to the rows of one slot, so that several hardly ever wait for each other."""
HOURS_KEPT = 72
"""Then the place of an hour, or a minute, is used again: so nothing has to be removed."""


@dataclass
class Total:
    """`failed` are attempts, `dead` deliveries that were given up; `durations` by the names of DURATIONS."""

    delivered: int = 0
    failed: int = 0
    dead: int = 0
    durations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(DURATIONS, 0))

    @property
    def counts(self) -> tuple[int, ...]:
        """As OUTCOMES and DURATIONS name them."""
        return self.delivered, self.failed, self.dead, *self.durations.values()


@dataclass(frozen=True)
class TotalOf:
    """Of one subscription in an hour, or of all together in a minute."""

    subscription_id: int
    began_at: datetime.datetime
    total: Total

    @property
    def place(self) -> int:
        """Where it stands among those that are kept; another one stood there before."""
        minutes = int(self.began_at.timestamp()) // 60
        return minutes // 60 % HOURS_KEPT if self.subscription_id else minutes % (60 * HOURS_KEPT)
