"""Retries and cancels tasks in the name of a person: each command is one transaction with its audit."""

from collections.abc import Sequence

from tidings.db.engine import Engine
from tidings.decisions.commanding import cancel_message, cancel_of, retry_of
from tidings.errors import InputRefused
from tidings.model.task_command import TaskCommanded, TaskCommandOutcome
from tidings.roles.tasks.operations import TaskCommandOperations

MOST_AT_ONCE = 500


async def retry(engine: Engine, ids: Sequence[int], actor: str) -> list[TaskCommanded]:
    """Those that failed for good start anew, those of the history as a new task; what each came to."""
    asked = _limited(ids)

    async def work(operations: TaskCommandOperations) -> list[TaskCommanded]:
        there = await operations.lock_tasks(asked)
        done = {id: TaskCommanded(id, retry_of(status), status, id) for id, status in there.items()}
        retried = [id for id, one in done.items() if one.outcome is TaskCommandOutcome.RETRIED]
        await operations.retry_tasks(retried)
        done |= await _submit_archived(operations, [id for id in asked if id not in there])
        changed = {
            id: {"outcome": str(one.outcome), "task_id": one.task_id}
            for id, one in done.items()
            if one.outcome in (TaskCommandOutcome.RETRIED, TaskCommandOutcome.SUBMITTED_ANEW)
        }
        await operations.audit(actor, "task.retried", changed)
        return _in_order(asked, done)

    return await TaskCommandOperations.step(engine, work)


async def cancel(engine: Engine, ids: Sequence[int], reason: str, actor: str) -> list[TaskCommanded]:
    """Those that wait will not be run; what each came to."""
    asked, message = _limited(ids), cancel_message(actor, reason)

    async def work(operations: TaskCommandOperations) -> list[TaskCommanded]:
        there = await operations.lock_tasks(asked)
        done = {id: TaskCommanded(id, cancel_of(status), status, id) for id, status in there.items()}
        cancelled = [id for id, one in done.items() if one.outcome is TaskCommandOutcome.CANCELLED]
        await operations.cancel_tasks(cancelled, message)
        await operations.audit(actor, "task.cancelled", {id: {"reason": reason} for id in cancelled})
        archived = await operations.archived_tasks([id for id in asked if id not in there])
        done |= {id: TaskCommanded(id, TaskCommandOutcome.ENDED, one.status) for id, one in archived.items()}
        return _in_order(asked, done)

    return await TaskCommandOperations.step(engine, work)


async def _submit_archived(operations: TaskCommandOperations, ids: Sequence[int]) -> dict[int, TaskCommanded]:
    archived = await operations.archived_tasks(ids)
    # Of several with the same business key the first that was named.
    firsts = {archived[id].key: id for id in reversed(ids) if id in archived}
    made = await operations.submit_archived([*firsts.values()])
    new = {firsts[key]: task_id for key, task_id in made.items()}
    return {
        id: TaskCommanded(id, TaskCommandOutcome.SUBMITTED_ANEW, one.status, new[id])
        if id in new
        else TaskCommanded(id, TaskCommandOutcome.KEY_TAKEN, one.status)
        for id, one in archived.items()
    }


def _limited(ids: Sequence[int]) -> list[int]:
    distinct = list(dict.fromkeys(ids))
    if not 1 <= len(distinct) <= MOST_AT_ONCE:
        raise InputRefused(f"{len(distinct)} at once can't be done.", f"Give 1 to {MOST_AT_ONCE}.", field="ids")
    return distinct


def _in_order(asked: Sequence[int], done: dict[int, TaskCommanded]) -> list[TaskCommanded]:
    return [done.get(id) or TaskCommanded(id, TaskCommandOutcome.NOT_FOUND) for id in asked]
