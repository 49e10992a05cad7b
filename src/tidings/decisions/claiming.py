"""Which tasks are claimed next: how many, in which order, and by which questions none of them is missed."""

import datetime
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

LOWEST_PRIORITY, HIGHEST_PRIORITY = -32_768, 32_767
# What a handler is thought to take while nobody knows.
SECONDS_OF_A_TASK = 1.0
SECONDS_AHEAD = 0.05
MOST_AHEAD = 4000


@dataclass(frozen=True)
class Stretch:
    """Priorities of one type, from `lowest` to `highest`, of which the first waiting task is asked for."""

    biz_type: str
    lowest: int
    highest: int


@dataclass(frozen=True)
class Head:
    """The first waiting task of a stretch: of the least priority there, and of that the one that is due first."""

    biz_type: str
    priority: int
    is_due: bool


@dataclass(frozen=True)
class Place:
    """A task in the order of its lane: by due time, then id."""

    next_run_time: datetime.datetime
    id: int


BEGINNING = Place(datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC), 0)


@dataclass(frozen=True)
class Lane:
    """Tasks of one type and one priority; `room` for so many of those behind `passed`."""

    biz_type: str
    priority: int
    room: int
    passed: Place = BEGINNING


def stretches(biz_type: str, known: Collection[int]) -> Iterator[Stretch]:
    """Every priority there could be: each known one by itself, and what lies between them.

    A task that is not due yet hides only those of its own priority, and of a priority that is new one hears at once.
    """
    lowest = LOWEST_PRIORITY
    for priority in sorted(known):
        if lowest < priority:
            yield Stretch(biz_type, lowest, priority - 1)
        yield Stretch(biz_type, priority, priority)
        lowest = priority + 1
    if lowest <= HIGHEST_PRIORITY:
        yield Stretch(biz_type, lowest, HIGHEST_PRIORITY)


def first_lanes(
    heads: Collection[Head], rooms: Mapping[str, int], passed: Mapping[tuple[str, int], Place] = {}
) -> list[Lane]:
    """Of each type the priority that comes first among those with something due."""
    first: dict[str, int] = {}
    for head in heads:
        if head.is_due:
            first[head.biz_type] = min(head.priority, first.get(head.biz_type, head.priority))
    return [
        Lane(biz_type, priority, rooms[biz_type], passed.get((biz_type, priority), BEGINNING))
        for biz_type, priority in first.items()
    ]


def claim_ahead(concurrency: int, seconds_each: float) -> int:
    """How many more than can run at once: as many as will have run in a moment, so that quick ones never wait for us.

    Slow ones are not claimed ahead: another worker may be free for them.
    """
    return min(MOST_AHEAD, int(concurrency * SECONDS_AHEAD / max(seconds_each, 1e-6)))
