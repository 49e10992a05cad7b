"""Leases: the poison rule, the time that must be left, and how many may wait for their turn."""

import pytest

from tidings.decisions.leasing import has_time, is_poisoned, waiting_room


@pytest.mark.parametrize(("resets", "poisoned"), [(0, False), (2, False), (3, True), (4, True)])
def test_the_fourth_expiry_is_one_too_many(resets: int, poisoned: bool) -> None:
    """Ruling 7: expiries 1–3 reset, the 4th fails the job."""
    assert is_poisoned(resets, 3) is poisoned


@pytest.mark.parametrize(("left", "fits"), [(20.0, True), (20.1, True), (19.9, False), (-1.0, False)])
def test_a_request_and_its_report_must_fit_in_what_is_left(left: float, fits: bool) -> None:
    """Ruling 9."""
    assert has_time(left, timeout=15, margin=5) is fits


@pytest.mark.parametrize(
    ("width", "seconds_each", "spare", "places", "delay"),
    [
        (32, 1.0, 256, 32, 1.0),
        (32, 0.1, 256, 256, 0.8),
        (32, 0.1, 5, 32, 0.2),
        (32, 0.0, 256, 256, 0.2),
        (32, 5.0, 256, 32, 5.0),
        (1, 60.0, 256, 1, 10.0),
    ],
)
def test_as_many_may_wait_as_are_sent_in_a_second_and_the_rest_comes_back_after_them(
    width: int, seconds_each: float, spare: int, places: int, delay: float
) -> None:
    room = waiting_room(width, seconds_each, spare)
    assert (room.places, room.delay) == (places, delay)
