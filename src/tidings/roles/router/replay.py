"""Routes one event again that could not be routed: from its snapshot, as the next attempt, if the gates are open."""

import json
from dataclasses import dataclass
from functools import partial

from tidings.db.engine import Engine
from tidings.decisions.routing import NO_HISTORY, Configuration, Planned, histories, plan_anew
from tidings.errors import NotFound, StatementDenied, StatementFailed
from tidings.model.event import LoggedEvent
from tidings.model.route import RouteAttemptStatus
from tidings.roles.router.gates import gates_of, refuse_if_closed
from tidings.roles.router.operations import RouteDeadLetter, RouterOperations
from tidings.roles.router.writing import write, write_failure

_RESOLVING = (RouteAttemptStatus.SENT, RouteAttemptStatus.DRY_RUN)


@dataclass(frozen=True)
class Replayed:
    """`statuses` of the decisions; `was_resolved` tells that there was nothing left to do."""

    dead_letter_id: int
    event_id: int
    statuses: tuple[str, ...]
    is_resolved: bool
    was_resolved: bool = False
    error: str = ""


async def replay(engine: Engine, dead_letter_id: int, actor: str) -> Replayed:
    """One transaction. A second failure is recorded and leaves the dead letter where it is."""
    return await RouterOperations.step(engine, partial(_replay, dead_letter_id=dead_letter_id, actor=actor))


async def _replay(operations: RouterOperations, dead_letter_id: int, actor: str) -> Replayed:
    found = await _existing(operations, dead_letter_id)
    # As a pass does: cursor first, then the rest, so that the two never wait for each other in a ring.
    await operations.wait_for_cursor(found.worker_name)
    letter = await _existing(operations, dead_letter_id)
    if letter.is_resolved:
        return Replayed(letter.id, letter.event_id, (), is_resolved=True, was_resolved=True)
    await refuse_if_closed(operations, *gates_of(letter.worker_name))
    planned = await _planned(operations, letter)
    error = await _written(operations, letter.worker_name, planned)
    statuses = (RouteAttemptStatus.FAILED,) if error else tuple(one.status for one in planned.decisions)
    resolving = next((status for status in statuses if status in _RESOLVING), None)
    if resolving:
        await operations.resolve(letter.id, resolving.value)
    detail = {"event_id": letter.event_id, "statuses": statuses, "attempt_no": planned.attempt_no}
    await operations.audit(actor, "route_dead_letter.replayed", f"route_dead_letter:{letter.id}", detail)
    return Replayed(letter.id, letter.event_id, statuses, is_resolved=bool(resolving), error=error)


async def _existing(operations: RouterOperations, dead_letter_id: int) -> RouteDeadLetter:
    letter = await operations.dead_letter(dead_letter_id)
    if letter is None:
        raise NotFound(
            f"There is no routing dead letter {dead_letter_id}.", "`tidings route-dead-letters list` shows them."
        )
    return letter


async def _planned(operations: RouterOperations, letter: RouteDeadLetter) -> Planned:
    event = event_of(letter.snapshot)
    configuration = Configuration(0, await operations.routes(), await operations.subscribers())
    decisions = configuration.decide(event)
    history = histories(await operations.attempts_among([event.id])).get(event.id, NO_HISTORY)
    biz_types = {decision.biz_type for decision in decisions if decision.biz_type}
    existing = (await operations.existing([event.id], biz_types))[event.id]
    return plan_anew(event, decisions, history, existing)


async def _written(operations: RouterOperations, worker_name: str, planned: Planned) -> str:
    try:
        async with operations.savepoint():
            await write(operations, worker_name, [planned])
    except StatementDenied:
        raise
    except StatementFailed as error:
        await write_failure(operations, worker_name, planned, error.what)
        return error.what
    return ""


def event_of(snapshot: str) -> LoggedEvent:
    fields = json.loads(snapshot)
    return LoggedEvent(
        fields["id"], fields["event_domain"], fields["event_type"], fields["event_stream"], fields["correlation_id"]
    )
