"""Dead letters and their way back: what a requeue of one came to, and how a requeue of many stands."""

from dataclasses import dataclass
from enum import StrEnum


class MassRequeueStatus(StrEnum):
    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"


class RequeueOutcome(StrEnum):
    """What the routine says about each id it was given."""

    STARTED = "started"
    ALREADY_STARTED = "already_started"
    NOT_FOUND = "not_found"
    NOT_ENDED_SO = "not_ended_so"
    SUBSCRIPTION_INACTIVE = "subscription_inactive"
    SUBSCRIPTION_UNVERIFIED = "subscription_unverified"

    @property
    def is_done(self) -> bool:
        """It is sent again, by this request or by one before it."""
        return self in (RequeueOutcome.STARTED, RequeueOutcome.ALREADY_STARTED)


@dataclass(frozen=True)
class Requeued:
    """`id` is the dead letter or the saga that was asked for, `saga_id` the new saga."""

    id: int
    saga_id: int | None
    generation: int | None
    outcome: RequeueOutcome
