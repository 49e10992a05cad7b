"""Which tasks are claimed next, and by which questions none of them is missed."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.claiming import (
    HIGHEST_PRIORITY,
    LOWEST_PRIORITY,
    MOST_AHEAD,
    Head,
    Lane,
    claim_ahead,
    first_lanes,
    stretches,
)

priorities = st.integers(LOWEST_PRIORITY, HIGHEST_PRIORITY)


@given(st.sets(priorities, max_size=8), priorities)
def test_every_priority_lies_in_exactly_one_stretch_and_each_known_one_by_itself(known: set[int], any: int) -> None:
    asked = [*stretches("a", known)]
    assert len([one for one in asked if one.lowest <= any <= one.highest]) == 1
    assert all(one.lowest <= one.highest for one in asked)
    assert known <= {one.lowest for one in asked if one.lowest == one.highest}


def test_of_each_type_the_first_priority_with_something_due_is_claimed() -> None:
    heads = [Head("a", 1, False), Head("a", 5, True), Head("a", 9, True), Head("b", 3, True), Head("c", 1, False)]
    assert first_lanes(heads, {"a": 4, "b": 2, "c": 1}) == [Lane("a", 5, 4), Lane("b", 3, 2)]


def test_only_quick_handlers_get_tasks_ahead_of_their_slots() -> None:
    assert claim_ahead(10, 1.0) == 0
    assert claim_ahead(10, 0.05) == 10
    assert claim_ahead(100, 0.0) == MOST_AHEAD
