"""Holes: ids that a router has passed without seeing their rows, and when it is proven that no row will come.

Ids are drawn before commit, so a row can appear behind a reader. Holes seen by the same time form a generation. Who
may still write is listed after they were seen; when all of those have ended, one more read shows every row that will
ever come, and what is still missing then is dropped. Never by a timeout. Three rules make it a proof: list after the
hole was seen, read again after the list became empty, and forget lists with the connection that made them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

Range = tuple[int, int]
Writers = frozenset[Hashable]


@dataclass(frozen=True)
class Generation:
    """`writers` may still fill these ranges; None: not listed since they were seen.

    `unread` is to be looked at again, since a writer has ended; `read` was looked at since then.
    """

    writers: Writers | None
    unread: tuple[Range, ...] = ()
    read: tuple[Range, ...] = ()

    @property
    def ranges(self) -> tuple[Range, ...]:
        return self.unread + self.read

    @property
    def is_ripe(self) -> bool:
        """Nobody is left who could fill them."""
        return self.writers is not None and not self.writers


Holes = tuple[Generation, ...]


@dataclass(frozen=True)
class InFlight:
    """The transactions that may still bring events. The `nameless` belong to every list: a restart renamed them."""

    writers: Writers
    nameless: Writers = frozenset()


@dataclass(frozen=True)
class Chunk:
    """What one pass looks at again: so many unread ranges of each generation."""

    taken: tuple[int, ...] = ()
    ranges: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Reading:
    """What a pass found and decided: up to `done_to` the chunk was read and every row of it decided."""

    chunk: Chunk
    decided: Collection[int]
    done_to: int | None


@dataclass(frozen=True)
class Settled:
    """The holes after a pass, and what that changes in their table."""

    holes: Holes
    removed: tuple[Range, ...]
    added: tuple[Range, ...]


def gaps(position: int, ids: Iterable[int]) -> list[Range]:
    """The ranges between `position` and the last of these ascending ids that are not among them."""
    found: list[Range] = []
    for number in ids:
        if number > position + 1:
            found.append((position + 1, number - 1))
        position = number
    return found


def remembered(ranges: Iterable[Range]) -> Holes:
    """Holes as they come out of their table: nobody knows who may fill them."""
    return refreshed((), ranges)


def is_ripe(holes: Holes) -> bool:
    """Whether nobody is left who could fill any of them."""
    return all(generation.is_ripe for generation in holes)


def all_ranges(holes: Holes) -> list[Range]:
    return [hole for generation in holes for hole in generation.ranges]


def witnessed(holes: Holes, seen: InFlight) -> Holes:
    """Takes in who is writing now, which was listed after all of these holes were seen."""
    return _merged(_witnessed(generation, seen) for generation in holes)


def unwitnessed(holes: Holes) -> Holes:
    """Forgets who may fill them: the connection that listed them is gone."""
    return remembered(all_ranges(holes))


def refreshed(holes: Holes, ranges: Iterable[Range]) -> Holes:
    """The holes as their table has them after somebody else's pass. What is known of a hole holds for its parts too;
    one that is not known is looked at now, and listed before it can be dropped."""
    known = sorted(
        (lo, hi, place, hole_is_unread)
        for place, generation in enumerate(holes)
        for part, hole_is_unread in ((generation.unread, True), (generation.read, False))
        for lo, hi in part
    )
    starts = [lo for lo, *_ in known]
    kept: dict[tuple[int, bool], list[Range]] = {}
    unknown: list[Range] = []
    for lo, hi in ranges:
        at = bisect_right(starts, lo) - 1
        if at >= 0 and hi <= known[at][1]:
            kept.setdefault(known[at][2:], []).append((lo, hi))
        else:
            unknown.append((lo, hi))
    generations = [
        Generation(one.writers, tuple(kept.get((place, True), ())), tuple(kept.get((place, False), ())))
        for place, one in enumerate(holes)
    ]
    return tuple(one for one in (*generations, Generation(None, unread=tuple(unknown))) if one.ranges)


def _witnessed(generation: Generation, seen: InFlight) -> Generation:
    if generation.writers is None:
        # Somebody may have ended between the read that saw the hole and this list.
        return Generation(seen.writers | seen.nameless, unread=generation.ranges)
    left = (generation.writers & seen.writers) | seen.nameless
    if generation.writers <= left:
        return replace(generation, writers=left)
    return Generation(left, unread=generation.ranges)


def _merged(generations: Iterable[Generation]) -> Holes:
    """Generations that wait for the same writers are one."""
    by_writers: dict[Writers | None, list[Generation]] = {}
    for generation in generations:
        by_writers.setdefault(generation.writers, []).append(generation)
    return tuple(
        several[0]
        if len(several) == 1
        else Generation(
            writers,
            tuple(hole for one in several for hole in one.unread),
            tuple(hole for one in several for hole in one.read),
        )
        for writers, several in by_writers.items()
    )


def next_chunk(holes: Holes, limit: int) -> Chunk:
    """The ranges to look at again in this pass, at most `limit`, however wide.

    Half of them from the newest on: what comes late comes mostly from them. The other half from the oldest on, so that
    what was drawn long ago is found soon too, however much is new.
    """
    taken = [0] * len(holes)
    places = range(len(holes))
    room = limit
    for order, least_left in ((reversed(places), limit // 2), (places, 0)):
        for place in order:
            more = min(len(holes[place].unread) - taken[place], max(0, room - least_left))
            taken[place] += more
            room -= more
    ranges = [hole for generation, count in zip(holes, taken, strict=True) for hole in generation.unread[:count]]
    return Chunk(tuple(taken), tuple(ranges))


def settle(holes: Holes, reading: Reading, new: Sequence[Range]) -> Settled:
    """The holes after a pass: found rows leave them, ripe ones that were read whole are dropped, new ones join."""
    kept: list[Generation] = []
    removed: list[Range] = []
    added: list[Range] = []
    decided = sorted(reading.decided)
    taken = reading.chunk.taken + (0,) * (len(holes) - len(reading.chunk.taken))
    for generation, count in zip(holes, taken, strict=True):
        looked_at, later = generation.unread[:count], generation.unread[count:]
        done: list[Range] = []
        undone: list[Range] = []
        for hole in looked_at:
            parts, rest = _after_reading(hole, decided, reading.done_to)
            left = [*([] if generation.is_ripe else parts), *rest]
            if left != [hole]:
                removed.append(hole)
                added += left
            done += [] if generation.is_ripe else parts
            undone += rest
        after = Generation(generation.writers, (*undone, *later), (*generation.read, *done))
        if after.ranges:
            kept.append(after)
    if new:
        kept.append(Generation(None, read=tuple(new)))
    return Settled(tuple(kept), tuple(removed), (*added, *new))


def _after_reading(hole: Range, decided: Sequence[int], done_to: int | None) -> tuple[list[Range], list[Range]]:
    """What is still missing of the part that was read, and the part that was not."""
    lo, hi = hole
    end = hi if done_to is None else min(hi, done_to)
    inside = decided[bisect_left(decided, lo) : bisect_right(decided, end)]
    parts = gaps(lo - 1, [*inside, end + 1]) if end >= lo else []
    return parts, [(max(lo, end + 1), hi)] if end < hi else []
