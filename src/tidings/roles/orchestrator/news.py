"""What became due lately: found without looking through the lanes, and in most of them it is all that is due."""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tidings.roles.orchestrator.hints import Hints
from tidings.roles.orchestrator.operations import NewSaga, OrchestratorOperations


@dataclass(frozen=True)
class News:
    """The lanes that have some, the newest first. In lanes that were `empty` nothing is due but these `sagas`."""

    lanes: Sequence[int]
    sagas: Sequence[NewSaga] = ()
    empty: frozenset[int] = frozenset()

    def waiting(self, lanes: Sequence[int]) -> list[int]:
        """Those of the lanes in which something may be due."""
        nothing = self.empty.difference(self.lanes)
        return [lane for lane in lanes if lane not in nothing]

    @property
    def known(self) -> Mapping[int, Sequence[int]]:
        """All that is due in the lanes that were empty, the longest due first."""
        found: dict[int, list[int]] = defaultdict(list)
        for saga in sorted(self.sagas, key=lambda saga: (saga.next_attempt_at, saga.id)):
            if saga.subscription_id in self.empty:
                found[saga.subscription_id].append(saga.id)
        return found

    def left_empty(self, started: Container[int], emptied: Iterable[int]) -> frozenset[int]:
        """The lanes that are empty after a step, which has started these sagas and emptied these lanes."""
        still_due = [saga.subscription_id for saga in self.sagas if saga.id not in started]
        return self.empty.union(emptied).difference(still_due)


async def look_for_news(operations: OrchestratorOperations, hints: Hints, most: int) -> News:
    behind = hints.news_behind
    if behind is None:
        return News(await operations.lanes_with_news(most))
    sagas = await operations.news(behind.saga, behind.moment, most + 1)
    # Where there are too many, some were not seen, and no lane is known to have been empty.
    empty = hints.empty if len(sagas) <= most else frozenset[int]()
    return News([saga.subscription_id for saga in sagas], sagas, empty)
