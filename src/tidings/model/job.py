"""One attempt to send one saga's event: its statuses and the only moves between them (seed r02 §2.2)."""

from collections.abc import Mapping
from enum import StrEnum


class JobStatus(StrEnum):
    PENDING = "Pending"
    LEASED = "Leased"
    COMPLETED = "Completed"
    FAILED = "Failed"


JOB_MOVES: Mapping[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.LEASED}),
    # Back to Pending: given back unsent by its worker, or reset by the lease cleaner.
    JobStatus.LEASED: frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.PENDING}),
    JobStatus.COMPLETED: frozenset(),
    JobStatus.FAILED: frozenset(),
}
