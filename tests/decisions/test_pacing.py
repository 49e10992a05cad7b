"""Lanes are served in turn, each within its window, all within one limit, and none of them starves."""

from collections import Counter
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.pacing import (
    LANES_AT_ONCE,
    FlowLimits,
    free_room,
    lanes_to_serve,
    next_turn,
    rooms,
    taken_in_turn,
)

lane_lists = st.lists(st.integers(1, 10**6), unique=True, max_size=300).map(sorted)
counts = st.dictionaries(st.integers(1, 40), st.integers(0, 3000), max_size=40)
limits = st.builds(FlowLimits, st.integers(1, 20_000), st.just(8), st.just(2_000))
windows = st.dictionaries(st.integers(1, 40), st.integers(1, 2_000), min_size=1, max_size=40)


def test_a_turn_begins_after_the_last_one_and_comes_round() -> None:
    assert next_turn([1, 2, 3], 0) == [1, 2, 3]
    assert next_turn([1, 2, 3], 2) == [3, 1, 2]
    assert next_turn([1, 2, 3], 99) == [1, 2, 3]
    assert next_turn([], 5) == []


@given(lane_lists, st.integers(0, 10**6))
def test_a_turn_is_bounded_and_has_every_lane_once_at_most(lanes: list[int], last: int) -> None:
    turn = next_turn(lanes, last)
    assert len(turn) == min(len(lanes), LANES_AT_ONCE)
    assert len({*turn}) == len(turn)
    assert {*turn} <= {*lanes}


@given(lane_lists, st.integers(0, 10**6))
def test_every_lane_has_its_turn_before_any_has_its_second(lanes: list[int], last: int) -> None:
    served: set[int] = set()
    for _ in range(-(-len(lanes) // LANES_AT_ONCE)):
        turn = next_turn(lanes, last)
        served |= {*turn}
        last = turn[-1]
    assert served == {*lanes}


@given(lane_lists, st.lists(st.integers(1, 10**6)), st.integers(0, 10**6))
def test_news_come_first_and_take_nobodys_turn(lanes: list[int], news: list[int], last: int) -> None:
    turn = next_turn(lanes, last)
    served = lanes_to_serve(turn, news, frozenset(lanes))
    assert {*turn} <= {*served} <= {*lanes}
    assert len({*served}) == len(served) <= 2 * LANES_AT_ONCE


def test_news_of_a_lane_that_may_not_be_sent_to_are_none() -> None:
    assert lanes_to_serve([1], [7, 2, 7, 2], {1, 2}) == [2, 1]


@given(counts, windows, limits, st.integers(1, 1000))
def test_never_more_than_is_free_in_all_and_in_a_window(
    active: Mapping[int, int], windows: Mapping[int, int], limits: FlowLimits, batch: int
) -> None:
    free = free_room(active, limits, batch)
    assert 0 <= free <= batch
    assert free == 0 or sum(active.values()) + free <= limits.active_jobs_max
    found = rooms(windows, active, free)
    assert all(0 < room <= free and room + active.get(lane, 0) <= windows[lane] for lane, room in found.items())
    taken = Counter(taken_in_turn({lane: [lane] * room for lane, room in found.items()}, free))
    assert sum(taken.values()) <= free
    assert all(count <= found[lane] for lane, count in taken.items())


@given(counts, windows, st.integers(0, 1000))
def test_only_a_full_window_shuts_a_lane_out(active: Mapping[int, int], windows: Mapping[int, int], free: int) -> None:
    found = rooms(windows, active, free)
    assert {*found} == {lane for lane, window in windows.items() if free and active.get(lane, 0) < window}


@given(lanes=st.integers(1, 40), free=st.integers(1, 1000))
def test_what_is_free_is_given_out_whole_where_no_window_is_near(lanes: int, free: int) -> None:
    found = rooms(dict.fromkeys(range(lanes), 2_000), {}, free)
    assert sum(found.values()) >= free


@given(st.dictionaries(st.integers(1, 100), st.lists(st.integers(), max_size=50), max_size=30), st.integers(0, 300))
def test_what_is_taken_is_shared_evenly(due: Mapping[int, list[int]], free: int) -> None:
    """No lane gets a second one more than another that still has some."""
    labelled = {lane: [(lane, place) for place in range(len(sagas))] for lane, sagas in due.items()}
    numbers = {pair: number for number, pair in enumerate(pair for pairs in labelled.values() for pair in pairs)}
    names = {number: pair for pair, number in numbers.items()}
    taken = [names[one] for one in taken_in_turn({k: [numbers[p] for p in v] for k, v in labelled.items()}, free)]
    assert len(taken) == min(free, len(names))
    per_lane = Counter(lane for lane, _ in taken)
    for lane, sagas in due.items():
        if per_lane[lane] < len(sagas):
            assert per_lane[lane] >= max(per_lane.values(), default=0) - 1
        assert [place for of, place in taken if of == lane] == list(range(per_lane[lane]))


@given(
    others=st.sets(st.integers(1, 500), min_size=1, max_size=200),
    hogs=st.sets(st.integers(1, 500), max_size=5),
    window=st.integers(1, 100),
)
def test_no_lane_starves_whatever_the_others_have(others: set[int], hogs: set[int], window: int) -> None:
    """Hogs never finish a job, have news all the time, and stand at their window; the others are served regardless."""
    limits = FlowLimits(active_jobs_max=1000 + window * len(hogs), window_start=window, window_max=window)
    lanes = sorted(others | hogs)
    active: Counter[int] = Counter()
    served: Counter[int] = Counter()
    last = 0
    for _ in range(2 * -(-len(lanes) // LANES_AT_ONCE)):
        turn = next_turn(lanes, last)
        last = turn[-1]
        free = free_room(active, limits, 500)
        served_now = lanes_to_serve(turn, [*hogs] * 100, frozenset(lanes))
        found = rooms(dict.fromkeys(served_now, window), active, free)
        for lane in taken_in_turn({lane: [lane] * room for lane, room in found.items()}, free):
            served[lane] += 1
            active[lane] += lane in hogs
    assert all(served[lane] > 0 for lane in lanes)
