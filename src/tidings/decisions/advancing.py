"""How a saga goes on: after the result of its job, and when its time has come (seed r01 §6–8)."""

from dataclasses import dataclass
from typing import NamedTuple

from tidings.decisions.retrying import Backoff, retry_delay
from tidings.model.job import JobStatus
from tidings.model.saga import SagaStatus


@dataclass(frozen=True)
class RetryPolicy:
    """How often a delivery is attempted in all, and how long it waits in between."""

    max_retry_limit: int
    backoff: Backoff


class JobResult(NamedTuple):
    """What a finished job reported, and the saga it belongs to as it stands."""

    job_id: int
    saga_id: int
    subscription_id: int
    status: JobStatus
    error_code: str | None
    retry_after: int | None
    saga_status: SagaStatus
    attempt_count: int


@dataclass(frozen=True)
class Completed:
    """Delivered; the saga ends."""


@dataclass(frozen=True)
class Retried:
    """Failed, and waits for its next attempt."""

    delay: float
    error_code: str


@dataclass(frozen=True)
class Buried:
    """Failed for the last time; the saga ends as a dead letter."""

    error_code: str


@dataclass(frozen=True)
class Ignored:
    """The saga does not wait for a result: nothing changes but that this one was seen."""


Advance = Completed | Retried | Buried | Ignored

UNKNOWN_ERROR = "unknown"


def advance(result: JobResult, policy: RetryPolicy) -> Advance:
    """What a result means for its saga. Each result counts as one attempt, success included."""
    if result.saga_status is not SagaStatus.IN_PROGRESS:
        return Ignored()
    if result.status is JobStatus.COMPLETED:
        return Completed()
    attempts = result.attempt_count + 1
    error_code = result.error_code or UNKNOWN_ERROR
    if attempts >= policy.max_retry_limit:
        return Buried(error_code)
    return Retried(retry_delay(policy.backoff, result.saga_id, attempts, result.retry_after), error_code)


def is_exhausted(attempt_count: int, policy: RetryPolicy) -> bool:
    """Whether a saga that is due has no attempt left, since its limit was lowered meanwhile."""
    return attempt_count >= policy.max_retry_limit
