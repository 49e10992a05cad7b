"""One retention process: walks from the oldest on, and removes the stories that are finished in every part.

Each story goes in one transaction together with what is counted of it. What is not finished is passed by, and looked at
again when the walk has begun anew.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tidings.db.engine import Engine
from tidings.db.halving import write_by_halves
from tidings.decisions.expiring import Facts, OldEvent, Story, finished_stories, totals_by_day
from tidings.model.route import RouteAttemptStatus, RouteTarget
from tidings.roles.retention.operations import Place, RetentionOperations, Walk
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import RowSetAside, StoriesRemoved

BATCH = 100
MOST_SAGAS = 5_000
# Longer than an idle router pauses: between two batches each of them has its turn at its cursor.
PAUSE = 0.1
SECONDS_OF_A_ROUND = 3600.0
EVENTS, TASKS = "events", "tasks"
_MOST_DIGITS = 18


@dataclass(frozen=True)
class Looked:
    """One batch, and what went. `has_more` tells that there may be more that is old behind it."""

    has_more: bool = False
    removed: Counter[str] | None = None
    refused: Sequence[tuple[str, str]] = ()


class Retention:
    """`engine` is one of the role retention; `keep` are seconds, or None for ever."""

    def __init__(self, engine: Engine, keep: float | None, *, batch: int = BATCH, most_sagas: int = MOST_SAGAS) -> None:
        self._engine = engine
        self._keep = keep
        self._batch = batch
        self._most_sagas = most_sagas
        self._removed: Counter[str] = Counter()
        self._has_walks = False

    async def step(self) -> bool:
        """One batch of each walk. False if there is nothing more that is old."""
        if self._keep is None:
            return False
        if not self._has_walks:
            await RetentionOperations.step(self._engine, _make_walks)
            self._has_walks = True
        looked = [await self._walk(EVENTS, self._remove_stories), await self._walk(TASKS, self._remove_tasks)]
        if any(one.has_more for one in looked):
            await asyncio.sleep(PAUSE)
            return True
        self._announce()
        return False

    async def _walk(self, name: str, remove: Callable[[RetentionOperations, Walk], Awaitable[Looked]]) -> Looked:
        looked = await RetentionOperations.step(self._engine, partial(self._look, name=name, remove=remove))
        self._removed.update(looked.removed or {})
        for row, error in looked.refused:
            tell(RowSetAside("retention", row, error))
        return looked

    async def _look(
        self,
        operations: RetentionOperations,
        name: str,
        remove: Callable[[RetentionOperations, Walk], Awaitable[Looked]],
    ) -> Looked:
        assert self._keep is not None
        walk = await operations.take_walk(name, self._keep, SECONDS_OF_A_ROUND)
        if walk is None:
            return Looked()
        looked = await remove(operations, walk)
        if not looked.has_more and walk.is_long_ago:
            await operations.begin_walk(name)
        return looked

    async def _remove_stories(self, operations: RetentionOperations, walk: Walk) -> Looked:
        old = await operations.old_events(walk, self._batch)
        if not old:
            return Looked()
        found = _as_many_as_fit(old, await operations.saga_counts([event.id for event, _ in old]), self._most_sagas)
        stories = finished_stories([event for event, _ in found], await _facts(operations, walk, found))
        refused = await write_by_halves(operations, stories, partial(_remove, operations))
        await operations.move_walk(EVENTS, found[-1][1])
        left = {story.event.id for story, _ in refused}
        removed: Counter[str] = Counter()
        for story in stories:
            removed.update(story.counts if story.event.id not in left else {})
        told = [(f"event:{story.event.id}", error.what) for story, error in refused]
        return Looked(len(old) == self._batch or len(found) < len(old), removed, told)

    async def _remove_tasks(self, operations: RetentionOperations, walk: Walk) -> Looked:
        """A task that an event came to stays as long as the event, which is not finished without it."""
        found = await operations.old_tasks(walk, self._batch)
        if not found:
            return Looked()
        events = {int(task.biz_key) for task in found if _is_id(task.biz_key)}
        kept = await operations.events_with_tasks([*events])
        gone = [task for task in found if not (_is_id(task.biz_key) and int(task.biz_key) in kept)]
        if gone:
            await operations.remove_tasks([task.id for task in gone])
            days = Counter(task.day for task in gone)
            await operations.add_totals({day: {"tasks": count} for day, count in days.items()})
        await operations.move_walk(TASKS, found[-1].place)
        return Looked(len(found) == self._batch, Counter(tasks=len(gone)))

    def _announce(self) -> None:
        if self._removed.total():
            tell(StoriesRemoved(*(self._removed[name] for name in ("events", "sagas", "jobs", "tasks"))))
            self._removed.clear()


async def _make_walks(operations: RetentionOperations) -> None:
    for name in (EVENTS, TASKS):
        await operations.make_walk(name)


async def _facts(operations: RetentionOperations, walk: Walk, found: Sequence[tuple[OldEvent, Place]]) -> Facts:
    """Read while the cursors are held: whoever makes sagas or tasks of past events waits for us, or we for them."""
    ids = [event.id for event, _ in found]
    routers = await operations.hold_cursors()
    attempts = await operations.attempts_of(ids, walk.cutoff)
    sagas = await operations.sagas_of(ids, walk.cutoff)
    with_tasks = [
        id
        for id, some in attempts.items()
        if any(one.route_kind == RouteTarget.TASK and one.status is RouteAttemptStatus.SENT for one in some)
    ]
    return Facts(
        [*routers.values()],
        await operations.holes_between(routers, ids) if routers else [],
        attempts,
        await operations.letters_of(ids, walk.cutoff),
        sagas,
        await operations.jobs_of([saga.id for some in sagas.values() for saga in some]),
        await operations.dead_letters_of(ids),
        await operations.with_open_tasks(with_tasks),
    )


async def _remove(operations: RetentionOperations, stories: Sequence[Story]) -> None:
    await operations.remove([story.event.id for story in stories], [id for story in stories for id in story.saga_ids])
    await operations.add_totals(totals_by_day(stories))


def _as_many_as_fit(
    found: Sequence[tuple[OldEvent, Place]], sagas: dict[int, int], most: int
) -> list[tuple[OldEvent, Place]]:
    """One at least, however many sagas it has: a story is not split."""
    fitting: list[tuple[OldEvent, Place]] = []
    for event, place in found:
        most -= sagas.get(event.id, 0)
        if fitting and most < 0:
            break
        fitting.append((event, place))
    return fitting


def _is_id(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) <= _MOST_DIGITS
