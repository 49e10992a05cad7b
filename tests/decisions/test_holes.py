"""Holes close when their rows appear or when it is proven that none will: never otherwise, and always then.

A model of a database plays histories against one cursor and two routers: ids drawn before commit, rows that are
visible before their writer is gone, lost connections, renamed writers, passes that are cut short.
"""

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tidings.decisions.holes import (
    Chunk,
    Generation,
    Holes,
    InFlight,
    Range,
    Reading,
    all_ranges,
    gaps,
    is_ripe,
    next_chunk,
    refreshed,
    remembered,
    settle,
    unwitnessed,
    witnessed,
)

NOBODY = InFlight(frozenset())


def in_flight(*writers: str) -> InFlight:
    return InFlight(frozenset(writers))


def read_through(holes: Holes, *found: int, limit: int = 100) -> Holes:
    """A pass that reads all it may, and finds these rows."""
    return settle(holes, Reading(next_chunk(holes, limit), set(found), None), ()).holes


def ids_of(ranges: Iterable[Range]) -> set[int]:
    return {number for lo, hi in ranges for number in range(lo, hi + 1)}


def test_gaps_are_what_lies_between_the_visible_ids() -> None:
    assert gaps(0, [1, 2, 5, 6, 9]) == [(3, 4), (7, 8)]
    assert gaps(7, [8]) == gaps(7, []) == []


def test_a_hole_that_nobody_can_fill_is_dropped_after_one_more_read() -> None:
    seen = witnessed(remembered([(3, 4)]), NOBODY)
    assert all_ranges(seen) == [(3, 4)]
    assert read_through(seen) == ()


def test_a_hole_is_not_dropped_by_the_pass_that_saw_it_nor_before_anybody_was_listed() -> None:
    new = settle((), Reading(Chunk(), set(), None), [(3, 4)]).holes
    assert all_ranges(read_through(new)) == all_ranges(read_through(remembered([(3, 4)]))) == [(3, 4)]


def test_a_hole_waits_for_everybody_who_was_writing_when_it_was_listed_and_for_nobody_else() -> None:
    holes = read_through(witnessed(remembered([(3, 3)]), in_flight("a", "b")))
    holes = read_through(witnessed(holes, in_flight("b", "c")))
    assert all_ranges(holes) == [(3, 3)]
    assert read_through(witnessed(holes, in_flight("c"))) == ()


def test_a_hole_is_looked_at_again_only_when_one_of_its_writers_has_ended() -> None:
    """One transaction that stays open costs memory, not time."""
    holes = read_through(witnessed(remembered([(3, 3)]), in_flight("a", "b")))
    assert next_chunk(witnessed(holes, in_flight("a", "b", "c")), 100).ranges == ()
    assert next_chunk(witnessed(holes, in_flight("b")), 100).ranges == ((3, 3),)


def test_writers_without_a_name_belong_to_every_list() -> None:
    """A restart renames prepared transactions, so that nobody can tell which one it was."""
    holes = witnessed(remembered([(3, 3)]), in_flight("4/2"))
    renamed = InFlight(frozenset({"-1/7"}), nameless=frozenset({"-1/7"}))
    holes = read_through(witnessed(holes, renamed))
    assert all_ranges(holes) == [(3, 3)]
    assert read_through(witnessed(holes, NOBODY)) == ()


def test_forgotten_lists_drop_nothing_until_there_are_new_ones() -> None:
    ripe = witnessed(remembered([(3, 3)]), NOBODY)
    assert is_ripe(ripe)
    assert not is_ripe(unwitnessed(ripe))
    assert all_ranges(read_through(unwitnessed(ripe))) == [(3, 3)]


def test_generations_that_wait_for_the_same_writers_become_one() -> None:
    first = witnessed(remembered([(3, 3)]), in_flight("a", "b"))
    both = settle(first, Reading(Chunk(), set(), None), [(7, 7)]).holes
    assert len(witnessed(both, in_flight("a"))) == 1


def test_a_wide_range_is_one_to_look_at_and_is_read_bit_by_bit() -> None:
    ripe = witnessed(remembered([(1, 1000), (2000, 2000)]), NOBODY)
    chunk = next_chunk(ripe, 1)
    assert chunk.ranges == ((1, 1000),)
    after = settle(ripe, Reading(chunk, {5, 9}, 9), ())
    assert sorted(all_ranges(after.holes)) == [(10, 1000), (2000, 2000)]
    assert (after.removed, after.added) == (((1, 1000),), ((10, 1000),))


def test_the_newest_and_the_oldest_holes_are_looked_at_in_every_pass() -> None:
    """What was drawn long ago and comes now does not wait until nothing is new."""
    old, middle, new = ([(start + 2 * n, start + 2 * n) for n in range(10)] for start in (100, 200, 300))
    holes = tuple(Generation(frozenset({part[0]}), unread=tuple(part)) for part in (old, middle, new))
    chunk = next_chunk(holes, 6)
    assert chunk.taken == (3, 0, 3)
    assert chunk.ranges == (*old[:3], *new[:3])
    assert next_chunk(holes, 26).taken == (10, 6, 10)
    assert next_chunk(holes, 100).ranges == (*old, *middle, *new)


def test_what_was_not_decided_in_this_pass_stays_a_hole() -> None:
    """The batch was full: what was read after its last event counts as not read."""
    ripe = witnessed(remembered([(1, 3), (5, 8)]), NOBODY)
    after = settle(ripe, Reading(next_chunk(ripe, 100), {2}, 2), ())
    assert sorted(all_ranges(after.holes)) == [(3, 3), (5, 8)]


def test_after_another_instance_s_pass_what_is_known_of_a_hole_holds_for_its_parts() -> None:
    known = read_through(witnessed(remembered([(1, 9), (20, 29)]), in_flight("a")))
    after = refreshed(known, [(1, 2), (5, 9), (28, 31)])
    assert next_chunk(after, 100).ranges == ((28, 31),)
    listed = witnessed(after, in_flight("b"))
    assert sorted(all_ranges(read_through(listed))) == [(28, 31)]


@given(st.sets(st.integers(1, 60)), st.integers(0, 30))
def test_gaps_and_ids_together_are_everything_passed(ids: set[int], position: int) -> None:
    later = sorted(number for number in ids if number > position)
    found = gaps(position, later)
    assert ids_of(found) == set(range(position + 1, max(later, default=position) + 1)) - set(later)
    assert all(one[1] + 1 < other[0] for one, other in itertools.pairwise(found))


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 30)), max_size=12),
    st.integers(1, 12),
    st.lists(st.booleans(), min_size=12, max_size=12),
)
def test_a_chunk_is_as_large_as_its_limit_and_never_larger(
    spans: list[tuple[int, int]], limit: int, unread: list[bool]
) -> None:
    start, ranges = 0, list[Range]()
    for gap, width in spans:
        ranges.append((start + gap, start + gap + width - 1))
        start += gap + width
    parts = [[hole for hole, flag in zip(ranges, unread, strict=False) if flag is wanted] for wanted in (True, False)]
    holes = (Generation(frozenset("a"), tuple(parts[0][::2])), Generation(None, tuple(parts[0][1::2]), tuple(parts[1])))
    chunk = next_chunk(holes, limit)
    assert len(chunk.ranges) == min(limit, len(parts[0]))
    taken = [hole for one, count in zip(holes, chunk.taken, strict=False) for hole in one.unread[:count]]
    assert sorted(taken) == sorted(chunk.ranges)


@dataclass
class Reader:
    """One instance of the router: what it knows of the holes, and of which state of the cursor."""

    holes: Holes = ()
    stamp: int = -1


@dataclass
class UnderWay:
    """A pass that has read what arrived late, and not yet what is new."""

    reader: Reader
    chunk: Chunk
    late: list[int]
    complete: bool


@dataclass
class World:
    """Ids up to `drawn` belong to somebody; `open` are who may still show theirs."""

    drawn: int = 0
    open: dict[str, set[int]] = field(default_factory=dict)
    nameless: set[str] = field(default_factory=set)
    visible: set[int] = field(default_factory=set)
    position: int = 0
    table: set[Range] = field(default_factory=set)
    decided: set[int] = field(default_factory=set)
    runs: int = 0


PICK = st.integers(0, 7)


class Histories(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.world = World()
        self.readers = [Reader(), Reader()]
        self.passing: UnderWay | None = None
        self.names = 0

    def pick(self, number: int) -> str:
        return sorted(self.world.open)[number % len(self.world.open)]

    @rule(count=st.integers(1, 9))
    def a_writer_begins_and_draws(self, count: int) -> None:
        self.names += 1
        self.world.open[f"w{self.names:03}"] = self._draw(count)

    @precondition(lambda self: self.world.open)
    @rule(number=PICK, count=st.integers(1, 4))
    def a_writer_draws_more(self, number: int, count: int) -> None:
        self.world.open[self.pick(number)] |= self._draw(count)

    @precondition(lambda self: self.world.open)
    @rule(number=PICK)
    def rows_become_visible(self, number: int) -> None:
        """The commit has happened; the writer is still in the list."""
        name = self.pick(number)
        self.world.visible |= self.world.open[name]
        self.world.open[name] = set()

    @precondition(lambda self: self.world.open)
    @rule(number=PICK)
    def a_writer_ends(self, number: int) -> None:
        """What it has not shown by now is rolled back."""
        name = self.pick(number)
        del self.world.open[name]
        self.world.nameless.discard(name)

    @precondition(lambda self: self.world.open)
    @rule(number=PICK)
    def a_server_restarts(self, number: int) -> None:
        """One prepared transaction survives, under another name; a pass that was under way is lost."""
        name = self.pick(number)
        self.names += 1
        survivor = f"-{self.names}"
        self.world.open = {survivor: self.world.open[name]}
        self.world.nameless = {survivor}
        self.passing = None
        for reader in self.readers:
            reader.holes = unwitnessed(reader.holes)

    @rule(which=st.integers(0, 1))
    def a_witness_loses_its_connection(self, which: int) -> None:
        self._between_passes(which, unwitnessed)

    @rule(which=st.integers(0, 1))
    def a_reader_looks_who_is_writing(self, which: int) -> None:
        seen = InFlight(frozenset(self.world.open), frozenset(self.world.nameless))
        self._between_passes(which, lambda holes: witnessed(holes, seen))

    def _between_passes(self, which: int, change: Callable[[Holes], Holes]) -> None:
        """What a pass began with is what it settles."""
        reader = self.readers[which]
        if self.passing is None or self.passing.reader is not reader:
            reader.holes = change(reader.holes)

    @precondition(lambda self: self.passing is None)
    @rule(which=st.integers(0, 1), limit=st.integers(1, 12), most=st.integers(1, 6))
    def a_pass_begins(self, which: int, limit: int, most: int) -> None:
        """It looks at so many ids, and takes at most so many of the rows it finds there."""
        reader = self.readers[which]
        if reader.stamp != self.world.runs:
            reader.holes = refreshed(reader.holes, sorted(self.world.table))
            reader.stamp = self.world.runs
        assert set(all_ranges(reader.holes)) == self.world.table
        chunk = next_chunk(reader.holes, limit)
        assert len(chunk.ranges) <= limit
        late = sorted(self.world.visible & ids_of(chunk.ranges))[:most]
        self.passing = UnderWay(reader, chunk, late, complete=len(late) < most)

    @precondition(lambda self: self.passing is not None)
    @rule(batch=st.integers(1, 12), full_after=st.integers(1, 20))
    def a_pass_ends(self, batch: int, full_after: int) -> None:
        passing, self.passing = self.passing, None
        assert passing is not None
        late = passing.late[:full_after]
        complete = passing.complete and len(late) == len(passing.late)
        reading = Reading(passing.chunk, set(late), None if complete else late[-1])
        fresh = sorted(number for number in self.world.visible if number > self.world.position)
        passed = fresh[: min(batch, full_after - len(late))]
        after = settle(passing.reader.holes, reading, gaps(self.world.position, passed))
        self._apply(after.removed, after.added)
        assert not self.world.decided & {*late, *passed}, "routed twice"
        self.world.decided |= {*late, *passed}
        self.world.position = passed[-1] if passed else self.world.position
        self.world.runs += 1
        passing.reader.holes, passing.reader.stamp = after.holes, self.world.runs

    @precondition(lambda self: self.passing is not None)
    @rule()
    def a_pass_is_rolled_back(self) -> None:
        self.passing = None

    @invariant()
    def nothing_visible_is_ever_dropped(self) -> None:
        passed = {number for number in self.world.visible if number <= self.world.position}
        assert passed <= self.world.decided | ids_of(self.world.table)

    @invariant()
    def ranges_never_overlap_and_hold_nothing_that_was_decided(self) -> None:
        assert len(ids_of(self.world.table)) == sum(hi - lo + 1 for lo, hi in self.world.table)
        assert not ids_of(self.world.table) & self.world.decided
        assert max(ids_of(self.world.table), default=0) <= self.world.position

    @invariant()
    def what_may_still_come_is_a_hole(self) -> None:
        coming = {number for ids in self.world.open.values() for number in ids}
        assert {number for number in coming if number <= self.world.position} <= ids_of(self.world.table)

    def teardown(self) -> None:
        """When every writer is gone, one router alone decides all that is visible and drops all the rest."""
        if not hasattr(self, "world"):
            return
        self.world.open, self.world.nameless, self.passing = {}, set(), None
        for _ in range(20 + self.world.drawn):
            self.a_reader_looks_who_is_writing(0)
            self.a_pass_begins(0, limit=12, most=6)
            self.a_pass_ends(batch=50, full_after=50)
        assert self.world.table == set()
        assert self.world.decided == self.world.visible

    def _draw(self, count: int) -> set[int]:
        first, self.world.drawn = self.world.drawn + 1, self.world.drawn + count
        return set(range(first, self.world.drawn + 1))

    def _apply(self, removed: tuple[Range, ...], added: tuple[Range, ...]) -> None:
        """As the table takes it: removed by their lower ends, added as they are."""
        assert set(removed) <= self.world.table
        left = {hole for hole in self.world.table if hole[0] not in {lo for lo, _ in removed}}
        assert not {lo for lo, _ in left} & {lo for lo, _ in added}
        self.world.table = left | set(added)


Histories.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
test_histories = Histories.TestCase
