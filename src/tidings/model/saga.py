"""The delivery of one event to one subscription: its statuses and the only moves between them (seed r01 §3)."""

from collections.abc import Mapping
from enum import StrEnum


class SagaStatus(StrEnum):
    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    PENDING_RETRY = "PendingRetry"
    COMPLETED = "Completed"
    DEAD_LETTERED = "DeadLettered"


# A last failure makes two of these moves at once: by way of PendingRetry it comes to DeadLettered.
SAGA_MOVES: Mapping[SagaStatus, frozenset[SagaStatus]] = {
    SagaStatus.PENDING: frozenset({SagaStatus.IN_PROGRESS}),
    SagaStatus.IN_PROGRESS: frozenset({SagaStatus.COMPLETED, SagaStatus.PENDING_RETRY}),
    SagaStatus.PENDING_RETRY: frozenset({SagaStatus.IN_PROGRESS, SagaStatus.DEAD_LETTERED}),
    SagaStatus.COMPLETED: frozenset(),
    SagaStatus.DEAD_LETTERED: frozenset(),
}
