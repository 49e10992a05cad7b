"""Tells what happened to each saga, after it was committed."""

from tidings.decisions.advancing import UNKNOWN_ERROR, Buried, Completed, Ignored, Retried
from tidings.roles.orchestrator.applying import Applied
from tidings.roles.orchestrator.starting import Started
from tidings.telemetry.bus import is_heard, tell
from tidings.telemetry.notices import ResultIgnored, SagaCompleted, SagaDeadLettered, SagaRetryScheduled, SagaStarted


def announce_applied(applied: list[Applied]) -> None:
    if not is_heard():
        return
    for one in applied:
        job, result = one.job, one.job.result
        about = (job.correlation_id, job.event_id, result.saga_id, result.job_id, job.worker_id, str(job.lease_until))
        match one.outcome:
            case Completed():
                tell(SagaCompleted(*about, result.attempt_count + 1))
            case Retried(delay, error_code):
                tell(SagaRetryScheduled(*about, result.attempt_count + 1, error_code, round(delay, 3)))
            case Buried(error_code):
                tell(SagaDeadLettered(*about, result.attempt_count + 1, error_code))
            case Ignored():
                tell(ResultIgnored(*about, str(result.saga_status)))


def announce_started(started: list[Started]) -> None:
    if not is_heard():
        return
    for one in started:
        saga = one.saga
        if one.is_buried:
            last = one.last_job
            tell(
                SagaDeadLettered(
                    saga.correlation_id,
                    saga.event_id,
                    saga.id,
                    last.job_id if last else None,
                    last.worker_id if last else None,
                    str(last.lease_until) if last else None,
                    saga.attempt_count,
                    saga.final_error_code or UNKNOWN_ERROR,
                )
            )
        else:
            tell(SagaStarted(saga.correlation_id, saga.event_id, saga.id, saga.subscription_id, saga.attempt_count + 1))
