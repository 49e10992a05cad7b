"""A task on its way into the queue: as it will be stored, and what submitting it came to."""

from dataclasses import dataclass

from tidings.model.task import TaskStatus


@dataclass(frozen=True)
class AcceptedTask:
    """A task that was checked and may be stored. `payload` is JSON text, kept byte for byte.

    `run_at` is UTC, written `2026-01-31 10:00:00.000000`; None is as soon as it is stored.
    """

    biz_type: str
    biz_key: str
    payload: str
    priority: int
    run_at: str | None
    max_retries: int
    correlation_id: str


@dataclass(frozen=True)
class Submitted:
    """Which task a request came to. A `duplicate` is the one that had this business key before, whatever its status."""

    id: int
    status: TaskStatus = TaskStatus.PENDING
    duplicate: bool = False
    payload_differs: bool = False
