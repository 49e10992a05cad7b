"""Starts what is due: a job for each saga, lanes in turn, or a burial where no attempt is left."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from tidings.db.halving import write_by_halves
from tidings.decisions.advancing import RetryPolicy, is_exhausted
from tidings.decisions.pacing import Window, probed, taken_in_turn
from tidings.errors import StatementFailed
from tidings.roles.orchestrator.hints import Since
from tidings.roles.orchestrator.operations import DueSaga, Lane, LastJob, OrchestratorOperations


class Started(NamedTuple):
    """A saga whose job was made, or which was buried since its limit had been lowered."""

    saga: DueSaga
    is_buried: bool
    last_job: LastJob | None = None


class Begun(NamedTuple):
    """What was started, what the database refused, and the lanes in which nothing that was due is left."""

    started: Sequence[Started] = ()
    refused: Sequence[tuple[Started, StatementFailed]] = ()
    emptied: frozenset[int] = frozenset()


async def start(
    operations: OrchestratorOperations,
    rooms: Mapping[int, int],
    since: Mapping[int, Since],
    known: Mapping[int, Sequence[int]],
    most: int,
    policy_of: Callable[[int], RetryPolicy],
    *,
    probing: Mapping[int, Window],
    aside: Collection[int],
    carefully: bool,
) -> Begun:
    """At most `most` of what is due in these lanes, but for those `aside`. Only if `carefully`, some may be refused.

    Of the lanes that are `probing` only a few are served at a time. Those whose due sagas are `known` are not asked.
    """
    beginning = Since()
    lanes = [
        # Whoever is aside may stand before the others, and takes none of their room.
        Lane(lane, room + len(aside), since.get(lane, beginning).pending, since.get(lane, beginning).retry)
        for lane, room in rooms.items()
        if lane not in known
    ]
    of_known = [(lane, saga_id) for lane in rooms for saga_id in known.get(lane, ())]
    due: dict[int, list[int]] = defaultdict(list)
    left = Counter[int]()
    for lane, saga_id in [*of_known, *await operations.due_sagas(lanes)]:
        left[lane] += 1
        if saga_id not in aside and len(due[lane]) < rooms[lane]:
            due[lane].append(saga_id)
    locked = await operations.lock_due(taken_in_turn(probed(due, probing), most))
    decided = await _decided(operations, locked, policy_of)
    refused = []
    if carefully:
        refused = await write_by_halves(operations, decided, lambda some: _write(operations, some))
    else:
        await _write(operations, decided)
    bad = {one.saga.id for one, _ in refused}
    started = [one for one in decided if one.saga.id not in bad]
    left.subtract(one.saga.subscription_id for one in started)
    emptied = frozenset(
        lane for lane, room in rooms.items() if not left[lane] and (lane in known or len(due[lane]) < room)
    )
    return Begun(started, refused, emptied)


async def _decided(
    operations: OrchestratorOperations, locked: Sequence[DueSaga], policy_of: Callable[[int], RetryPolicy]
) -> list[Started]:
    exhausted = {saga.id for saga in locked if is_exhausted(saga.attempt_count, policy_of(saga.subscription_id))}
    last_jobs = await operations.last_jobs([*exhausted])
    return [Started(saga, saga.id in exhausted, last_jobs.get(saga.id)) for saga in locked]


async def _write(operations: OrchestratorOperations, decided: Sequence[Started]) -> None:
    await operations.start_sagas([one.saga.id for one in decided if not one.is_buried])
    await operations.bury_exhausted([one.saga.id for one in decided if one.is_buried])
