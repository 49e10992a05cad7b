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
    TaskStatus.PENDING: frozenset({TaskStatus.PROCESSING}),
    TaskStatus.PROCESSING: frozenset({TaskStatus.SUCCESS, TaskStatus.FAIL_RETRY, TaskStatus.FAIL_TERMINAL}),
    TaskStatus.SUCCESS: frozenset(),
    TaskStatus.FAIL_RETRY: frozenset({TaskStatus.PROCESSING}),
    # Only by a person's retry, which is audited.
    TaskStatus.FAIL_TERMINAL: frozenset({TaskStatus.PENDING}),
}
