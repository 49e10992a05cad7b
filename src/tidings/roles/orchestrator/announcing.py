"""Tells what happened to sagas, after it was committed: of what went well the number, of everything else each one."""

from collections.abc import Sequence

from tidings.decisions.advancing import UNKNOWN_ERROR, Buried, Completed, Ignored, Retried
from tidings.roles.orchestrator.applying import Applied
from tidings.roles.orchestrator.starting import Started
from tidings.telemetry.bus import is_heard, tell
from tidings.telemetry.notices import (
    ResultIgnored,
    SagaCompleted,
    SagaDeadLettered,
    SagaRetryScheduled,
    SagasCompleted,
    SagasStarted,
    SagaStarted,
)


def announce_applied(applied: Sequence[Applied]) -> None:
    completed = [one for one in applied if isinstance(one.outcome, Completed)]
    if completed:
        tell(SagasCompleted(len(completed)))
    for one in applied if is_heard(SagaCompleted) or len(completed) < len(applied) else ():
        attempts = one.job.result.attempt_count + 1
        match one.outcome:
            case Completed():
                if is_heard(SagaCompleted):
                    tell(SagaCompleted(*_about(one), attempts))
            case Retried(delay, error_code):
                tell(SagaRetryScheduled(*_about(one), attempts, error_code, round(delay, 3)))
            case Buried(error_code):
                tell(SagaDeadLettered(*_about(one), attempts, error_code))
            case Ignored():
                tell(ResultIgnored(*_about(one), str(one.job.result.saga_status)))


def announce_started(started: Sequence[Started]) -> None:
    begun = [one for one in started if not one.is_buried]
    if begun:
        tell(SagasStarted(len(begun)))
    for one in begun if is_heard(SagaStarted) else ():
        saga = one.saga
        tell(SagaStarted(saga.correlation_id, saga.event_id, saga.id, saga.subscription_id, saga.attempt_count + 1))
    for one in started if len(begun) < len(started) else ():
        if one.is_buried:
            _announce_burial(one)


def _about(applied: Applied) -> tuple[str, int, int, int, str | None, str]:
    job, result = applied.job, applied.job.result
    return job.correlation_id, job.event_id, result.saga_id, result.job_id, job.worker_id, str(job.lease_until)


def _announce_burial(one: Started) -> None:
    saga, last = one.saga, one.last_job
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
