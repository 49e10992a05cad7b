"""What a person may do to a task, by how it stands: moves of the state machine and nothing else."""

import pytest

from tidings.decisions.commanding import cancel_message, cancel_of, retry_of
from tidings.decisions.texts import LONGEST_REASON
from tidings.errors import TaskRefused
from tidings.model.task import TASK_MOVES, TaskStatus
from tidings.model.task_command import TaskCommandOutcome


def test_only_what_failed_for_good_is_retried() -> None:
    """Ruling 8: "4 only to 0 by an audited retry"."""
    retried = {status for status in TaskStatus if retry_of(status) is TaskCommandOutcome.RETRIED}
    assert retried == {TaskStatus.FAIL_TERMINAL}


def test_only_what_waits_is_cancelled() -> None:
    assert {status: cancel_of(status) for status in TaskStatus} == {
        TaskStatus.PENDING: TaskCommandOutcome.CANCELLED,
        TaskStatus.PROCESSING: TaskCommandOutcome.UNDER_WAY,
        TaskStatus.SUCCESS: TaskCommandOutcome.ENDED,
        TaskStatus.FAIL_RETRY: TaskCommandOutcome.CANCELLED,
        TaskStatus.FAIL_TERMINAL: TaskCommandOutcome.ENDED,
    }


def test_every_command_is_a_move_of_the_table() -> None:
    for status in TaskStatus:
        if retry_of(status) is TaskCommandOutcome.RETRIED:
            assert TaskStatus.PENDING in TASK_MOVES[status]
        if cancel_of(status) is TaskCommandOutcome.CANCELLED:
            assert TaskStatus.FAIL_TERMINAL in TASK_MOVES[status]


def test_a_cancelled_task_says_who_and_why() -> None:
    assert cancel_message("cli:ann", "sent by hand") == "Cancelled by cli:ann: sent by hand"
    assert cancel_message("cli:ann", "") == "Cancelled by cli:ann"


@pytest.mark.parametrize("reason", ["a\nb", "x" * (LONGEST_REASON + 1)])
def test_a_reason_is_one_short_line(reason: str) -> None:
    with pytest.raises(TaskRefused) as refused:
        cancel_message("cli:ann", reason)
    assert refused.value.field == "reason"
