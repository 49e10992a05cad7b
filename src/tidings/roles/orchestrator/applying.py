"""Takes in the results of finished jobs, each once: the saga's move and the mark on the job are one transaction."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidings.db.halving import write_by_halves
from tidings.decisions.advancing import Advance, Buried, Completed, Retried, RetryPolicy, advance
from tidings.errors import StatementFailed
from tidings.roles.orchestrator.operations import FinishedJob, OrchestratorOperations


class Applied(NamedTuple):
    """One result, and what it meant for its saga."""

    job: FinishedJob
    outcome: Advance


Refused = list[tuple[Applied, StatementFailed]]


async def apply(
    operations: OrchestratorOperations,
    finished: Sequence[FinishedJob],
    policy_of: Callable[[int], RetryPolicy],
    *,
    carefully: bool,
) -> tuple[list[Applied], Refused]:
    """What was taken in and, if `carefully`, what the database refused."""
    # One for each saga: whatever else there is of it meets the saga as this one leaves it.
    first: dict[int, FinishedJob] = {}
    for job in finished:
        first.setdefault(job.result.saga_id, job)
    decided = [Applied(job, advance(job.result, policy_of(job.result.subscription_id))) for job in first.values()]
    if not carefully:
        await _write(operations, decided)
        return decided, []
    refused = await write_by_halves(operations, decided, lambda some: _write(operations, some))
    bad = {one.job.result.job_id for one, _ in refused}
    return [one for one in decided if one.job.result.job_id not in bad], refused


async def _write(operations: OrchestratorOperations, applied: Sequence[Applied]) -> None:
    await operations.mark_applied([one.job.result.job_id for one in applied])
    await operations.complete_sagas([_saga(one) for one in applied if isinstance(one.outcome, Completed)])
    await operations.retry_sagas({_saga(one): one.outcome for one in applied if isinstance(one.outcome, Retried)})
    await operations.bury_sagas({_saga(one): one.outcome for one in applied if isinstance(one.outcome, Buried)})


def _saga(applied: Applied) -> int:
    return applied.job.result.saga_id
