"""Claims tasks by the seed's optimistic lock: candidates are read, then taken if their version is still the same.

What is read does not grow with the backlog: of each type only the priority that comes first, and of it as many as there
is room for. Where claimers were in each other's way, for a while the read passes over what another is claiming.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidings.db.engine import Engine
from tidings.decisions.claiming import Head, Place, first_lanes, stretches
from tidings.roles.task_worker.operations import Candidate, ClaimedTask, Fence, TaskWorkerOperations

# After a lost race so many claims pass over what others hold; each further loss doubles it.
FEWEST_WARY, MOST_WARY = 32, 1024
# Between two claims that look at everything, as far as there is always something to claim: what was given back, or
# committed late, stands before what was taken last.
SECONDS_BETWEEN_SWEEPS = 1.0
# Of one type no more priorities than these are remembered that nobody uses any more.
MOST_PRIORITIES = 64


@dataclass(frozen=True)
class Claim:
    """What one claim got, and how many of its candidates others were quicker to take."""

    tasks: tuple[ClaimedTask, ...] = ()
    lost: int = 0


class Claimer:
    """One worker's claims. One whose answer was lost may have been heard: what it could have got goes back first."""

    def __init__(self, engine: Engine, worker_id: str) -> None:
        self._engine = engine
        self._worker_id = worker_id
        self._priorities: dict[str, set[int]] = {}
        # Many may begin at the same moment.
        self._wary = FEWEST_WARY
        self._wary_for = FEWEST_WARY
        self._unsure: list[Fence] = []
        # The last task that was taken of each lane. Those before it are gone, but not from the index while an old
        # transaction is open: to begin with them cost 300,000 tasks two thirds of their speed.
        self._passed: dict[tuple[str, int], Place] = {}
        self._swept_at = float("-inf")

    async def is_anything_due(self, types: Sequence[str]) -> bool:
        heads = await TaskWorkerOperations.alone(self._engine, lambda operations: self._heads(operations, types, {}))
        return any(head.is_due for head in heads)

    async def claim(self, rooms: Mapping[str, int], most: int) -> Claim:
        """At most `most` in all, and of each type as many as it has room for: by priority, due time and id."""
        found: list[Candidate] = []
        if time.monotonic() - self._swept_at >= SECONDS_BETWEEN_SWEEPS:
            self._sweep()

        async def claim(operations: TaskWorkerOperations) -> list[ClaimedTask]:
            await operations.give_back(self._unsure, self._worker_id)
            found[:] = await self._candidates(operations, rooms, most)
            if not found and self._passed:
                self._sweep()
                found[:] = await self._candidates(operations, rooms, most)
            self._unsure += (Fence(one.id, one.version + 1, one.status) for one in found)
            return await operations.claim(found, self._worker_id) if found else []

        tasks = await TaskWorkerOperations.step(self._engine, claim)
        self._unsure.clear()
        self._passed |= {one.lane: Place(one.next_run_time, one.id) for one in found}
        lost = len(found) - len(tasks)
        self._be_wary(lost)
        return Claim(tuple(tasks), lost)

    async def settle(self) -> None:
        """No claim follows: what the last one may have got is given back."""
        if not self._unsure:
            return
        await TaskWorkerOperations.step(self._engine, lambda one: one.give_back(self._unsure, self._worker_id))
        self._unsure.clear()

    async def _candidates(
        self, operations: TaskWorkerOperations, rooms: Mapping[str, int], most: int
    ) -> list[Candidate]:
        limited = {biz_type: min(room, most) for biz_type, room in rooms.items() if room > 0}
        passed = {lane: place for lane, place in self._passed.items() if lane[0] in limited}
        lanes = first_lanes(await self._heads(operations, [*limited], passed), limited, passed)
        if not lanes:
            return []
        found = await operations.candidates(lanes, only_free=self._wary > 0)
        return sorted(found, key=lambda one: (one.priority, one.next_run_time, one.id))[:most]

    def _sweep(self) -> None:
        self._passed.clear()
        self._swept_at = time.monotonic()

    async def _heads(
        self, operations: TaskWorkerOperations, types: Sequence[str], passed: Mapping[tuple[str, int], Place]
    ) -> list[Head]:
        """The first task of every priority there is; asked once more for each priority that was not known."""
        behind = await operations.heads_behind(passed)
        while True:
            asked = [one for biz_type in types for one in stretches(biz_type, self._priorities.get(biz_type, ()))]
            others = [one for one in asked if one.lowest < one.highest or (one.biz_type, one.lowest) not in passed]
            heads = [*behind, *await operations.heads(others)]
            if not self._learns_from(heads):
                return heads

    def _learns_from(self, heads: Sequence[Head]) -> bool:
        """Whether one of them has a priority that was not known; of many, those without tasks are forgotten."""
        before = {biz_type: len(known) for biz_type, known in self._priorities.items()}
        for head in heads:
            self._priorities.setdefault(head.biz_type, set()).add(head.priority)
        learned = any(before.get(biz_type) != len(known) for biz_type, known in self._priorities.items())
        for biz_type, known in self._priorities.items():
            if len(known) > MOST_PRIORITIES and not learned:
                known &= {head.priority for head in heads if head.biz_type == biz_type}
        return learned

    def _be_wary(self, lost: int) -> None:
        if lost:
            self._wary = self._wary_for
            self._wary_for = min(2 * self._wary_for, MOST_WARY)
        elif self._wary:
            self._wary -= 1
        else:
            self._wary_for = FEWEST_WARY
