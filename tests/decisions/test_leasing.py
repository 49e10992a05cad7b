"""How often a lease may expire, and whether a request still fits into one (rulings 7 and 9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.leasing import has_time, is_poisoned


def test_three_expiries_are_reset_and_the_fourth_is_not() -> None:
    """Ruling 7: the count is of resets so far."""
    assert [is_poisoned(resets, 3) for resets in range(5)] == [False, False, False, True, True]


def test_with_no_reset_allowed_the_first_expiry_is_the_last() -> None:
    assert is_poisoned(0, 0)


@pytest.mark.parametrize(("left", "enough"), [(20.0, True), (17.0, True), (16.999, False), (0.0, False), (-5.0, False)])
def test_a_request_and_its_report_must_fit_into_what_is_left(left: float, enough: bool) -> None:
    assert has_time(left, timeout=15, margin=2) is enough


@given(left=st.floats(-100, 1000), timeout=st.floats(0.1, 900), margin=st.floats(0, 60))
def test_more_time_is_never_less_enough(left: float, timeout: float, margin: float) -> None:
    if has_time(left, timeout, margin):
        assert has_time(left + 1, timeout, margin)
        assert has_time(left, timeout / 2, margin)
        assert has_time(left, timeout, margin / 2)
