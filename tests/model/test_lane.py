"""A lane in one line."""

import datetime

import pytest

from tidings.model.lane import SeenLane

NOW = datetime.datetime(2026, 1, 2, 12, 0, tzinfo=datetime.UTC)


def lane(
    window: int = 8, failures: int = 0, code: str | None = None, next_in: float | None = None, under_way: bool = False
) -> SeenLane:
    next_try = None if next_in is None else NOW + datetime.timedelta(seconds=next_in)
    return SeenLane(1, window, failures, NOW if failures else None, code, under_way, next_try, NOW)


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (lane(), "window 8 of 2,000"),
        (lane(2_000, under_way=True), "window 2,000 of 2,000, under way now"),
        (lane(1, 14, "http_503", 190), "window 1 of 2,000, 14 failures in a row, last http_503, next try 12:03:10"),
        (lane(4, 1, "timeout", -5), "window 4 of 2,000, 1 failure in a row, last timeout, next try now"),
        (lane(next_in=86_400), "window 8 of 2,000, next try 2026-01-03 12:00:00"),
    ],
)
def test_a_lane_is_said_in_one_line(seen: SeenLane, words: str) -> None:
    assert seen.words(window_max=2_000) == words


def test_of_a_lane_that_is_held_nothing_is_tried() -> None:
    assert lane(next_in=-5).words(2_000, is_held=True) == "window 8 of 2,000"
