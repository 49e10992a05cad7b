"""What one pass of a router reads, plans and comes to."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tidings.decisions.holes import Chunk, Reading
from tidings.decisions.routing import Planned
from tidings.model.event import LoggedEvent
from tidings.model.route import RouteAttemptStatus
from tidings.telemetry.notices import EventNotRouted


class Outcome(StrEnum):
    ROUTED = "routed"
    IDLE = "idle"
    BUSY = "busy"
    CLOSED = "closed"
    HELD = "held"


@dataclass(frozen=True)
class Pass:
    """What one pass came to; `reason` says why nothing was done, `remedy` what would help."""

    outcome: Outcome
    reason: str = ""
    remedy: str = ""
    read: int = 0
    late: int = 0
    sagas: int = 0
    tasks: int = 0
    holes: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[EventNotRouted, ...] = ()

    @property
    def did_work(self) -> bool:
        return self.outcome is Outcome.ROUTED


@dataclass(frozen=True)
class Batch:
    """The events of one pass: those that arrived late first. Those after `handled` stay for the next one."""

    chunk: Chunk
    late: Sequence[LoggedEvent]
    fresh: Sequence[LoggedEvent]
    late_is_complete: bool
    planned: Sequence[Planned] = ()
    handled: int = 0

    @property
    def events(self) -> list[LoggedEvent]:
        return [*self.late, *self.fresh]

    def reading(self) -> Reading:
        late = self.late[: self.handled]
        complete = self.late_is_complete and len(late) == len(self.late)
        return Reading(self.chunk, {event.id for event in late}, None if complete else late[-1].id)

    @property
    def passed(self) -> Sequence[LoggedEvent]:
        """Behind the last of these the cursor will stand."""
        return self.fresh[: max(0, self.handled - len(self.late))]


def summary(batch: Batch, written: Sequence[Planned], refused: tuple[EventNotRouted, ...], holes: int) -> Pass:
    """What a batch came to; what was refused counts as failed and came to nothing else."""
    statuses = Counter(decision.status for one in written for decision in one.decisions)
    counts = {status.value: statuses[status] for status in RouteAttemptStatus}
    counts[RouteAttemptStatus.FAILED.value] += len(refused)
    return Pass(
        Outcome.ROUTED,
        read=batch.handled,
        late=min(batch.handled, len(batch.late)),
        sagas=sum(one.sagas for one in written),
        tasks=sum(bool(decision.biz_type) for one in written for decision in one.decisions),
        holes=holes,
        counts=counts,
        refused=refused,
    )
