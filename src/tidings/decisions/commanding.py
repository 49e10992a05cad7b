"""Decides what a person's command does to a task in the queue, from how the task stands."""

from tidings.errors import TaskRefused
from tidings.model.task import TaskStatus
from tidings.model.task_command import TaskCommandOutcome

LONGEST_REASON = 500


def retry_of(status: TaskStatus) -> TaskCommandOutcome:
    """Only what failed for good starts anew; whatever waits or runs needs no help, and a success never changes."""
    failed = status is TaskStatus.FAIL_TERMINAL
    return TaskCommandOutcome.RETRIED if failed else TaskCommandOutcome.NOT_FAILED


def cancel_of(status: TaskStatus) -> TaskCommandOutcome:
    """Only what waits: nobody can reach into a handler that runs."""
    match status:
        case TaskStatus.PENDING | TaskStatus.FAIL_RETRY:
            return TaskCommandOutcome.CANCELLED
        case TaskStatus.PROCESSING:
            return TaskCommandOutcome.UNDER_WAY
    return TaskCommandOutcome.ENDED


def cancel_message(actor: str, reason: str) -> str:
    """What the task says of itself from then on."""
    if len(reason) > LONGEST_REASON or not reason.isprintable():
        raise TaskRefused(
            "The reason can't be kept.",
            f"Give at most {LONGEST_REASON} characters, without line breaks and control characters.",
            field="reason",
        )
    return f"Cancelled by {actor}: {reason}" if reason else f"Cancelled by {actor}"
