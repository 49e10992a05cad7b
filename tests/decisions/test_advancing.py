"""How a saga goes on: every decision is a walk along the table of moves, and the limits hold (seed r01 §6–8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.advancing import (
    UNKNOWN_ERROR,
    Advance,
    Buried,
    Completed,
    Ignored,
    JobResult,
    Retried,
    RetryPolicy,
    advance,
    is_exhausted,
)
from tidings.decisions.retrying import LONGEST_RETRY_AFTER, Backoff, retry_delay
from tidings.model.job import JOB_MOVES, JobStatus
from tidings.model.saga import SAGA_MOVES, SagaStatus

POLICY = RetryPolicy(3, Backoff(base=5, longest=3600, jitter=0))
FINISHED = [status for status in JobStatus if not JOB_MOVES[status]]
ENDS = {Completed: SagaStatus.COMPLETED, Retried: SagaStatus.PENDING_RETRY, Buried: SagaStatus.DEAD_LETTERED}


def moves_through(start: SagaStatus, end: SagaStatus) -> bool:
    """Whether the table of moves leads from one status to the other, by way of one between them at most."""
    return end in SAGA_MOVES[start] or any(end in SAGA_MOVES[middle] for middle in SAGA_MOVES[start])


def result(
    status: JobStatus = JobStatus.FAILED,
    error_code: str | None = "http_500",
    *,
    saga: SagaStatus = SagaStatus.IN_PROGRESS,
    attempts: int = 0,
    retry_after: int | None = None,
) -> JobResult:
    return JobResult(1, 7, 1, status, error_code, retry_after, saga, attempts)


results = st.builds(
    result,
    st.sampled_from(FINISHED),
    st.sampled_from([None, "", "timeout"]),
    saga=st.sampled_from(SagaStatus),
    attempts=st.integers(0, 40),
    retry_after=st.none() | st.integers(0, 10**7),
)
policies = st.builds(
    RetryPolicy,
    st.integers(1, 40),
    st.builds(Backoff, st.floats(0.01, 3600), st.floats(1, 86_400), st.floats(0, 1)),
)


@given(results, policies)
def test_every_decision_is_a_walk_along_the_table_of_moves(given: JobResult, policy: RetryPolicy) -> None:
    """r01 §3; InProgress to DeadLettered goes by way of PendingRetry (ruling 3)."""
    outcome = advance(given, policy)
    if isinstance(outcome, Ignored):
        assert given.saga_status is not SagaStatus.IN_PROGRESS
    else:
        assert moves_through(given.saga_status, ENDS[type(outcome)])


@given(results, policies)
def test_a_saga_that_has_ended_is_never_moved(given: JobResult, policy: RetryPolicy) -> None:
    """r01 §5.4 and §5.5."""
    if not SAGA_MOVES[given.saga_status]:
        assert advance(given, policy) == Ignored()


@pytest.mark.parametrize("status", [status for status in SagaStatus if status is not SagaStatus.IN_PROGRESS])
@pytest.mark.parametrize("job", FINISHED)
def test_a_result_that_the_saga_does_not_wait_for_is_ignored(status: SagaStatus, job: JobStatus) -> None:
    assert advance(result(job, saga=status), POLICY) == Ignored()


def test_a_success_completes_whatever_was_before() -> None:
    """r01 §8.2."""
    assert advance(result(JobStatus.COMPLETED, None, attempts=99), POLICY) == Completed()


@given(attempts=st.integers(0, 60), limit=st.integers(1, 60))
def test_the_limit_is_the_number_of_attempts_allowed(attempts: int, limit: int) -> None:
    """Ruling 3: a failed result with attempt_count ≥ limit buries, any other waits."""
    outcome = advance(result(attempts=attempts), RetryPolicy(limit, POLICY.backoff))
    assert isinstance(outcome, Buried if attempts + 1 >= limit else Retried)


def test_with_a_limit_of_one_there_is_no_retry() -> None:
    assert advance(result(), RetryPolicy(1, POLICY.backoff)) == Buried("http_500")


@given(results, policies)
def test_a_retry_waits_as_long_as_the_formula_says(given: JobResult, policy: RetryPolicy) -> None:
    """r01 §8.1: after the increment; ruling 4 with what the endpoint asked for."""
    outcome = advance(given, policy)
    if isinstance(outcome, Retried):
        assert outcome.delay == retry_delay(policy.backoff, 7, given.attempt_count + 1, given.retry_after)
        assert outcome.delay >= min(given.retry_after or 0, LONGEST_RETRY_AFTER)
        assert outcome.delay > 0


@pytest.mark.parametrize("limit", [1, 9])
@pytest.mark.parametrize(("reported", "kept"), [("timeout", "timeout"), (None, UNKNOWN_ERROR), ("", UNKNOWN_ERROR)])
def test_a_failure_always_has_an_error_code(reported: str | None, kept: str, limit: int) -> None:
    outcome: Advance = advance(result(error_code=reported), RetryPolicy(limit, POLICY.backoff))
    assert isinstance(outcome, Buried | Retried)
    assert outcome.error_code == kept


@given(results, policies)
def test_the_same_result_is_always_decided_in_the_same_way(given: JobResult, policy: RetryPolicy) -> None:
    assert advance(given, policy) == advance(given, policy)


@pytest.mark.parametrize(("attempts", "exhausted"), [(0, False), (2, False), (3, True), (4, True)])
def test_what_is_due_has_an_attempt_left_or_is_exhausted(attempts: int, exhausted: bool) -> None:
    """r01 §6.1 and §7.3: attempt_count < max_retry_limit, whatever the limit was before."""
    assert is_exhausted(attempts, POLICY) is exhausted


def test_walks_are_no_longer_than_two_moves() -> None:
    assert moves_through(SagaStatus.IN_PROGRESS, SagaStatus.DEAD_LETTERED)
    assert not moves_through(SagaStatus.PENDING, SagaStatus.DEAD_LETTERED)
    assert not any(moves_through(end, status) for end in ENDS.values() if not SAGA_MOVES[end] for status in SagaStatus)
