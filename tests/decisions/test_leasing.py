"""Leases: the poison rule, the time that must be left, and how many may wait for their turn."""

import pytest

from tidings.decisions.leasing import (
    DELAYS,
    give_back_delay,
    has_time,
    is_poisoned,
    slots_for_the_slow,
    waiting_room,
    width_of_the_unknown,
)


@pytest.mark.parametrize(("resets", "poisoned"), [(0, False), (2, False), (3, True), (4, True)])
def test_the_fourth_expiry_is_one_too_many(resets: int, poisoned: bool) -> None:
    """Ruling 7: expiries 1–3 reset, the 4th fails the job."""
    assert is_poisoned(resets, 3) is poisoned


@pytest.mark.parametrize(("left", "fits"), [(20.0, True), (20.1, True), (19.9, False), (-1.0, False)])
def test_a_request_and_its_report_must_fit_in_what_is_left(left: float, fits: bool) -> None:
    """Ruling 9."""
    assert has_time(left, timeout=15, margin=5) is fits


@pytest.mark.parametrize(
    ("width", "seconds_each", "spare", "places"),
    [(32, 1.0, 256, 32), (32, 0.1, 256, 256), (32, 0.1, 5, 32), (32, 0.0, 256, 256), (32, 5.0, 256, 32)],
)
def test_as_many_may_wait_as_are_sent_in_a_second(width: int, seconds_each: float, spare: int, places: int) -> None:
    room = waiting_room(width, seconds_each, spare)
    assert (room.places, room.seconds_between) == (places, seconds_each / width)


@pytest.mark.parametrize(
    ("seconds", "delay"), [(0.0, 0.2), (0.2, 0.2), (0.21, 0.5), (1.5, 2.0), (9.9, 10.0), (3600.0, 10.0)]
)
def test_the_rest_comes_back_after_them_in_one_of_a_few_delays(seconds: float, delay: float) -> None:
    assert give_back_delay(seconds) == delay
    assert delay in DELAYS


@pytest.mark.parametrize(("taken", "width"), [(0, 32), (63, 32), (64, 2), (256, 2)])
def test_who_has_not_answered_yet_gets_little_where_slots_are_scarce(taken: int, width: int) -> None:
    assert width_of_the_unknown(32, 256, taken) == width
    assert width_of_the_unknown(1, 256, taken) == 1


@pytest.mark.parametrize(("slots", "slow"), [(256, 128), (3, 1), (1, 1)])
def test_slow_ones_together_have_half_of_the_slots(slots: int, slow: int) -> None:
    assert slots_for_the_slow(slots) == slow
