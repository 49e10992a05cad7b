"""A pending task of the generic queue: its statuses, integers as in seed 003, and the only moves between them."""

from collections.abc import Mapping
from enum import IntEnum


class TaskStatus(IntEnum):
    PENDING = 0
    PROCESSING = 1
    SUCCESS = 2
    FAIL_RETRY = 3
    FAIL_TERMINAL = 4


TASK_MOVES: Mapping[TaskStatus, frozenset[TaskStatus]] = {
    # To FAIL_TERMINAL: cancelled by a person.
    TaskStatus.PENDING: frozenset({TaskStatus.PROCESSING, TaskStatus.FAIL_TERMINAL}),
    # Back to PENDING: claimed, not begun, and given back by a worker that stops.
    TaskStatus.PROCESSING: frozenset(
        {TaskStatus.SUCCESS, TaskStatus.FAIL_RETRY, TaskStatus.FAIL_TERMINAL, TaskStatus.PENDING}
    ),
    TaskStatus.SUCCESS: frozenset(),
    TaskStatus.FAIL_RETRY: frozenset({TaskStatus.PROCESSING, TaskStatus.FAIL_TERMINAL}),
    # Only by a person's retry, which is audited.
    TaskStatus.FAIL_TERMINAL: frozenset({TaskStatus.PENDING}),
}

# What stands in result_msg, in the words of the seed.
OK = "OK"
TIMED_OUT = "Task timed out (Worker crashed?)"
MAX_RETRIES_EXCEEDED = "Max retries exceeded: {error}"
LONGEST_RESULT = 2000

LONGEST_TYPE, LONGEST_KEY = 50, 100
"""Of a type of task, and of a business key."""
