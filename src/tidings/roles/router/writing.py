"""Writes what was decided: attempts, sagas, tasks, for a whole batch in a few statements.

An event whose rows the database refuses is found by halving and set aside whole; its neighbours go on. What would be
refused whatever the rows, such as for want of a right, sets nothing aside.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tidings.db.halving import write_by_halves
from tidings.decisions.routing import Decision, Planned, attempt_key
from tidings.errors import StatementFailed
from tidings.model.route import RouteAttemptStatus
from tidings.roles.router.operations import RouterOperations

_LONGEST_REASON = 500


async def write(operations: RouterOperations, worker_name: str, planned: Sequence[Planned]) -> None:
    """All of it, or StatementFailed."""
    await operations.insert_attempts(
        [_attempt_row(worker_name, one, decision) for one in planned for decision in one.decisions]
    )
    await _write_sagas(operations, planned)
    await _write_tasks(operations, planned)


async def write_carefully(
    operations: RouterOperations, worker_name: str, planned: Sequence[Planned]
) -> list[tuple[Planned, str]]:
    """The same for everything that can be written. Returns the rest, and why."""
    refused = await write_by_halves(operations, planned, lambda some: write(operations, worker_name, some))
    return [(one, error.what) for one, error in refused]


async def bury(operations: RouterOperations, worker_name: str, planned: Planned, error: str) -> None:
    """Records the failure and keeps the event whole, to be replayed."""
    event = planned.event
    await write_failure(operations, worker_name, planned, error)
    key = attempt_key(worker_name, None, event.id)
    snapshot = snapshot_text(await operations.whole_event(event.id))
    await operations.bury(event.id, worker_name, key, snapshot, error)


async def write_failure(operations: RouterOperations, worker_name: str, planned: Planned, error: str) -> None:
    failure = Decision(None, "", RouteAttemptStatus.FAILED, reason=error[:_LONGEST_REASON])
    await operations.insert_attempts([_attempt_row(worker_name, planned, failure)])


def snapshot_text(event: Mapping[str, Any]) -> str:
    """The whole event as JSON, with the payload's own text inside."""
    rest = json.dumps({name: value for name, value in event.items() if name != "payload"}, ensure_ascii=False)
    return f'{rest[:-1]}, "payload": {event["payload"]}}}'


def _attempt_row(worker_name: str, planned: Planned, decision: Decision) -> tuple[Any, ...]:
    return (
        planned.event.id,
        worker_name,
        decision.route_id,
        decision.route_kind,
        decision.status.value,
        decision.matched,
        decision.reason,
        decision.detail,
        planned.attempt_no,
        attempt_key(worker_name, decision.route_id, planned.event.id),
    )


async def _write_sagas(operations: RouterOperations, planned: Sequence[Planned]) -> None:
    sagas = [
        (one.event.id, subscription, one.event.correlation_id)
        for one in planned
        for decision in one.decisions
        for subscription in decision.subscriptions
    ]
    if await operations.insert_sagas(sagas) < len(sagas):
        there = await operations.existing({event_id for event_id, _, _ in sagas}, ())
        _refuse_missing([f"{e}:{s}" for e, s, _ in sagas if s not in there[e].subscriptions], "sagas")


async def _write_tasks(operations: RouterOperations, planned: Sequence[Planned]) -> None:
    events: dict[str, list[int]] = defaultdict(list)
    for one in planned:
        for decision in one.decisions:
            if decision.biz_type:
                events[decision.biz_type].append(one.event.id)
    for biz_type, ids in events.items():
        if await operations.insert_tasks(biz_type, ids) < len(ids):
            there = await operations.existing(ids, [biz_type])
            _refuse_missing([f"{biz_type}:{e}" for e in ids if biz_type not in there[e].biz_types], "tasks")


def _refuse_missing(missing: Sequence[str], what: str) -> None:
    """MySQL's INSERT IGNORE passes over more than duplicates; what is not there afterwards was refused."""
    if missing:
        raise StatementFailed(f"The database took no {what} for {', '.join(missing[:5])}.")
