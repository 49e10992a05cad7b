"""What a person may ask for about a task, and what it came to."""

from dataclasses import dataclass
from enum import StrEnum

from tidings.model.task import TaskStatus


class TaskCommandOutcome(StrEnum):
    RETRIED = "retried"
    SUBMITTED_ANEW = "submitted_anew"
    CANCELLED = "cancelled"
    NOT_FOUND = "not_found"
    KEY_TAKEN = "key_taken"
    NOT_FAILED = "not_failed"
    UNDER_WAY = "under_way"
    ENDED = "ended"

    @property
    def is_done(self) -> bool:
        """What was asked for was done; every other outcome is a refusal."""
        done = (TaskCommandOutcome.RETRIED, TaskCommandOutcome.SUBMITTED_ANEW, TaskCommandOutcome.CANCELLED)
        return self in done


@dataclass(frozen=True)
class TaskCommanded:
    """`task_id` is the task that is in the queue now: the same one, or a new one for an archived one.

    `status` is what it was before; None if it is in neither table.
    """

    id: int
    outcome: TaskCommandOutcome
    status: TaskStatus | None = None
    task_id: int | None = None
