"""The ledger: what was accepted and what routers wrote down on one side, what became of it on the other."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

EVENT_FATES = ("sent", "dry_run", "disabled", "skipped", "failed", "unrouted")
DELIVERY_FATES = ("delivered", "dead", "pending", "held")
REMOVED = ("events", "wanted", "delivered", "dead", "tasks")


@dataclass(frozen=True)
class Difference:
    """One thing that the two sides do not agree about: `subject` is `event:7`, `saga:12`, and so on."""

    subject: str
    event_id: int | None
    what: str


@dataclass
class Ledger:
    """Sums over a range of events. `wanted` counts deliveries and tasks that routers wrote down, by kind.

    `removed` is what retention has taken away since the beginning; it is no part of the other sums.
    """

    first_event: int = 0
    last_event: int = 0
    events: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    deliveries: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    @property
    def accepted(self) -> int:
        return self.events.total()

    @property
    def adds_up(self) -> bool:
        return not self.differences

    def as_dict(self) -> dict[str, Any]:
        return {
            "adds_up": self.adds_up,
            "first_event": self.first_event,
            "last_event": self.last_event,
            "accepted": self.accepted,
            "events": {fate: self.events[fate] for fate in EVENT_FATES},
            "wanted": {"deliveries": self.wanted["webhook"], "tasks": self.wanted["task"]},
            "deliveries": {fate: self.deliveries[fate] for fate in DELIVERY_FATES},
            "removed": {what: self.removed[what] for what in REMOVED},
            "differences": [vars(one) for one in self.differences],
        }
