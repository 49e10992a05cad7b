"""Requeues dead letters and resends completed sagas: a few by id, or many by a filter as a stored operation.

A stored operation goes on where it was when its process died, at its own rate, until it is done or cancelled.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.errors import InputRefused, NotFound
from tidings.model.dead_letter import MassRequeueStatus, Requeued, RequeueOutcome
from tidings.roles.dead_letters.operations import DeadLetterOperations, Filter, MassRequeue
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import SagasRequeued

MOST_AT_ONCE = 500
MOST_COUNTED = 1_000_000
_BATCHES_A_SECOND = 4


@dataclass(frozen=True)
class Preview:
    """What a filter finds; `refused` are those of subscriptions to which nothing may be sent, by subscription."""

    total: int
    last_id: int
    refused: Mapping[int, tuple[bool, int]]


async def requeue(engine: Engine, ids: Sequence[int], actor: str) -> list[Requeued]:
    """One transaction with its audit; asked twice, also at the same time, it makes one new saga."""

    async def work(operations: DeadLetterOperations) -> list[Requeued]:
        done = await operations.requeue(_limited(ids))
        await operations.audit(actor, "dead_letters.requeued", "dead_letters", _told(done))
        return done

    return _announced(await DeadLetterOperations.step(engine, work))


async def resend(engine: Engine, ids: Sequence[int], actor: str) -> list[Requeued]:
    """The same for completed sagas."""

    async def work(operations: DeadLetterOperations) -> list[Requeued]:
        done = await operations.resend(_limited(ids))
        await operations.audit(actor, "sagas.resent", "sagas", _told(done))
        return done

    return _announced(await DeadLetterOperations.step(engine, work))


async def preview(engine: Engine, filter: Filter) -> Preview:
    async def work(operations: DeadLetterOperations) -> Preview:
        total, last_id = await operations.count_letters(filter, MOST_COUNTED)
        return Preview(total, last_id, await operations.count_refused(filter, MOST_COUNTED))

    return await DeadLetterOperations.step(engine, work)


async def begin(engine: Engine, filter: Filter, rate: int, actor: str) -> int:
    """Stores the operation; nothing is requeued yet. Dead letters that come later are not part of it."""
    if not 1 <= rate <= 10_000:
        raise InputRefused(f"A rate of {rate} a second is not possible.", "Give one from 1 to 10000.", field="rate")

    # Not run again by itself: after a connection lost in COMMIT that might store a second one.
    async with engine.transaction() as transaction:
        operations = DeadLetterOperations(transaction, engine.dialect)
        total, last_id = await operations.count_letters(filter, MOST_COUNTED)
        mass_id = await operations.insert_mass(filter, rate, actor, total, last_id)
        detail = {"filter": filter.as_json(), "rate": rate, "total": total}
        await operations.audit(actor, "mass_requeue.begun", f"mass_requeue:{mass_id}", detail)
    return mass_id


async def go_on(engine: Engine, mass_id: int, most: int) -> MassRequeue:
    """The next `most` of it in one transaction; returns how it stands then."""

    async def work(operations: DeadLetterOperations) -> tuple[list[Requeued], MassRequeue]:
        locked = await operations.lock_mass(mass_id)
        if locked is None or locked.status is not MassRequeueStatus.RUNNING:
            return [], await _known(operations, mass_id)
        done = await _requeue_next(operations, locked, min(most, MOST_AT_ONCE))
        return done, await _known(operations, mass_id)

    done, stands = await DeadLetterOperations.step(engine, work)
    _announced(done)
    return stands


async def run(engine: Engine, mass_id: int, told: Callable[[MassRequeue], None]) -> MassRequeue:
    """Goes on at its own rate until it is over, and tells how it stands. Whoever is stopped here loses nothing."""
    stands = await look(engine, mass_id)
    while stands.status is MassRequeueStatus.RUNNING:
        began, most = time.monotonic(), min(MOST_AT_ONCE, max(1, stands.rate // _BATCHES_A_SECOND))
        stands = await go_on(engine, mass_id, most)
        told(stands)
        if stands.status is MassRequeueStatus.RUNNING:
            await asyncio.sleep(max(0.0, began + most / stands.rate - time.monotonic()))
    return stands


async def look(engine: Engine, mass_id: int) -> MassRequeue:
    return await DeadLetterOperations.step(engine, lambda operations: _known(operations, mass_id))


async def cancel(engine: Engine, mass_id: int, actor: str) -> MassRequeue:
    """What was requeued stays so; the rest stays dead."""

    async def work(operations: DeadLetterOperations) -> MassRequeue:
        await _known(operations, mass_id)
        if await operations.end_mass(mass_id, MassRequeueStatus.CANCELLED):
            await operations.audit(actor, "mass_requeue.cancelled", f"mass_requeue:{mass_id}", {})
        return await _known(operations, mass_id)

    return await DeadLetterOperations.step(engine, work)


async def _requeue_next(operations: DeadLetterOperations, mass: MassRequeue, most: int) -> list[Requeued]:
    ids = await operations.next_letters(mass, most)
    done = await operations.requeue(ids)
    outcomes = Counter(one.outcome for one in done)
    started, already = outcomes[RequeueOutcome.STARTED], outcomes[RequeueOutcome.ALREADY_STARTED]
    if ids:
        await operations.move_mass(mass.id, ids[-1], started, already, len(ids) - started - already)
    if len(ids) < most:
        await operations.end_mass(mass.id, MassRequeueStatus.DONE)
    return done


async def _known(operations: DeadLetterOperations, mass_id: int) -> MassRequeue:
    found = await operations.mass(mass_id)
    if found is None:
        raise NotFound(f"There is no mass requeue {mass_id}.", "`tidings dead-letters requeues` lists them.")
    return found


def _limited(ids: Sequence[int]) -> list[int]:
    distinct = list(dict.fromkeys(ids))
    if len(distinct) > MOST_AT_ONCE:
        raise InputRefused(
            f"{len(distinct)} at once are too many.", f"Give at most {MOST_AT_ONCE}, or use a filter.", field="ids"
        )
    return distinct


def _told(done: Sequence[Requeued]) -> dict[str, object]:
    return {"ids": [one.id for one in done], "outcomes": Counter(str(one.outcome) for one in done)}


def _announced(done: list[Requeued]) -> list[Requeued]:
    started = [one for one in done if one.outcome is RequeueOutcome.STARTED]
    if started:
        tell(SagasRequeued(tuple(one.saga_id for one in started if one.saga_id is not None)))
    return done
