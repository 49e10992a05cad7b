"""Decides what a person's command does to a task in the queue, from how the task stands."""

from tidings.decisions.texts import LONGEST_REASON, RefusingAs, one_line
from tidings.errors import TaskRefused
from tidings.model.task import TaskStatus
from tidings.model.task_command import TaskCommandOutcome


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
    with RefusingAs(TaskRefused):
        one_line(reason, "reason", LONGEST_REASON)
    return f"Cancelled by {actor}: {reason}" if reason else f"Cancelled by {actor}"
