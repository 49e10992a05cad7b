"""A window follows its lane's results: wider while successes use it up, narrower while attempts fail, one at least."""

import datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.pacing import (
    PROBES_AT_ONCE,
    FlowLimits,
    Window,
    after_failure,
    after_success,
    merged,
    probed,
    rested,
)

LIMITS = FlowLimits(active_jobs_max=20_000, window_start=8, window_max=2_000)
NOW = datetime.datetime(2026, 1, 2, 12, 0, tzinfo=datetime.UTC)
results = st.text("+-", max_size=300)
sizes = st.integers(1, 2_000)


def after(window: Window, results: str, is_limit: bool = True) -> Window:
    """`+` went well, `-` failed."""
    for result in results:
        if result == "+":
            window = after_success(window, is_limit, LIMITS)
        else:
            window = after_failure(window, NOW, "http_503", is_limit, LIMITS)
    return window


@pytest.mark.parametrize(
    ("size", "results", "becomes"),
    [
        # A round is as many results as the window has places.
        (8, "+++++++", 8),
        (8, "++++++++", 16),
        (8, "+" * (8 + 16), 32),
        (1, "+", 2),
        (1, "+" * (1 + 2 + 4), 8),
        (1, "+" * 2047, 2000),
        (1024, "+" * 1024, 2000),
        (2000, "+" * 2000, 2000),
        # A quarter of a round may fail; between that and half it stays as it is.
        (8, "+++--+++", 16),
        (8, "+++---++", 8),
        (8, "++--++--", 8),
        (8, "++--+---", 4),
        (100, ("+" * 9 + "-") * 10, 200),
        (100, "+++-" * 25, 200),
        (100, "++-" * 34, 100),
        # Eight failures in a row are enough, however wide it is and whatever went before.
        (2000, "-" * 7, 2000),
        (2000, "-" * 8, 1000),
        (2000, "+" * 1500 + "-" * 8, 1000),
        (2000, "-" * 7 + "+" + "-" * 7, 2000),
        (2000, "-" * 16, 500),
        # From the start to one attempt at a time, and from the very widest.
        (8, "-" * 8, 4),
        (8, "-" * 12, 2),
        (8, "-" * 13, 2),
        (8, "-" * 14, 1),
        (2000, "-" * 64, 7),
        (2000, "-" * 74, 1),
        (1, "-" * 100, 1),
        (2, "-+", 2),
        (2, "--", 1),
        (3, "--+", 1),
    ],
)
def test_a_window_becomes_what_was_worked_out(size: int, results: str, becomes: int) -> None:
    assert after(Window(size), results).size == becomes


def test_one_failure_among_many_successes_costs_nothing() -> None:
    healthy = after(Window(8), "+" * 3_000)
    assert healthy.size == LIMITS.window_max
    assert after(healthy, ("+" * 99 + "-") * 100).size == LIMITS.window_max


def test_a_window_that_limits_nobody_does_not_grow_beyond_its_start() -> None:
    """There was room left, or workers gave jobs back since they had too many."""
    assert after(Window(8), "+" * 1_000, is_limit=False).size == 8
    assert after(Window(1), "+" * 1_000, is_limit=False).size == 8
    assert after(Window(500), "+" * 10_000, is_limit=False).size == 500


def test_failures_in_a_row_are_counted_until_the_first_success() -> None:
    down = after(Window(8), "-" * 14)
    assert (down.size, down.failures, down.failed_at, down.error_code) == (1, 14, NOW, "http_503")
    assert down.is_probing
    up = after(down, "+")
    assert (up.size, up.failures, up.error_code) == (2, 0, "http_503")
    assert not up.is_probing


@given(sizes, results)
def test_it_is_never_below_one_nor_above_the_most_and_moves_by_halves_and_doubles(size: int, results: str) -> None:
    found = [Window(size)]
    for result in results:
        found.append(after(found[-1], result))
    for before, now in pairwise(found):
        assert now.size in {before.size, max(1, before.size // 2), min(2 * before.size, LIMITS.window_max)}
        assert now.good + now.bad < max(now.size, 2)


@given(sizes, results, st.integers(0, 300))
def test_results_that_come_in_other_batches_come_to_the_same(size: int, results: str, cut: int) -> None:
    whole = after(Window(size), results)
    assert after(after(Window(size), results[:cut]), results[cut:]) == whole


@given(sizes)
def test_a_lane_that_only_fails_is_at_one_after_a_few_dozen_failures(size: int) -> None:
    assert after(Window(size), "-" * 80).size == 1


@pytest.mark.parametrize(
    ("size", "idle", "becomes"),
    [(2_000, 59, 2_000), (2_000, 60, 8), (9, 3_600, 8), (8, 3_600, 8), (1, 3_600, 1)],
)
def test_after_a_long_hold_it_is_learnt_anew(size: int, idle: float, becomes: int) -> None:
    """A narrow one stays: whoever failed is not trusted for having been silent."""
    assert rested(Window(size), idle, LIMITS).size == becomes


@pytest.mark.parametrize(
    ("own", "base", "shared", "size", "failures"),
    [
        # Nobody else has moved it.
        (Window(16), Window(8), Window(8), 16, 0),
        (Window(1, 14), Window(8), Window(8), 1, 14),
        # Others have, and so have we: both count.
        (Window(16), Window(8), Window(16), 32, 0),
        (Window(4, 8), Window(8), Window(4, 8), 2, 16),
        (Window(16), Window(8), Window(4, 8), 8, 8),
        (Window(2_000), Window(1_000), Window(2_000), 2_000, 0),
        (Window(1, 20), Window(4, 12), Window(1, 14), 1, 22),
        # We have seen the row of failures end; or others have.
        (Window(2), Window(1, 14), Window(1, 16), 2, 0),
        (Window(1, 15), Window(1, 14), Window(2), 2, 1),
    ],
)
def test_what_several_orchestrators_have_learnt_is_put_together(
    own: Window, base: Window, shared: Window, size: int, failures: int
) -> None:
    found = merged(own, base, shared, LIMITS)
    assert (found.size, found.failures) == (size, failures)


@given(sizes, sizes, sizes, st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_whatever_is_put_together_is_a_window(own: int, base: int, shared: int, a: int, b: int, c: int) -> None:
    found = merged(Window(own, a), Window(base, b), Window(shared, c), LIMITS)
    assert 1 <= found.size <= LIMITS.window_max
    assert found.failures >= 0


def test_the_last_failure_of_all_is_kept() -> None:
    earlier = NOW - datetime.timedelta(seconds=5)
    own, shared = Window(1, 3, earlier, "timeout"), Window(1, 4, NOW, "http_500")
    assert merged(own, Window(1), shared, LIMITS).error_code == "http_500"
    assert merged(shared, Window(1), own, LIMITS).error_code == "http_500"


def test_of_many_lanes_that_only_fail_a_few_are_probed_at_a_time_the_longest_waiting_first() -> None:
    down = {lane: Window(1, 20, NOW - datetime.timedelta(seconds=lane), "timeout") for lane in range(1, 11)}
    due = {**{lane: [lane] for lane in range(1, 10)}, 99: [990, 991]}
    found = probed(due, down)
    assert {*found} == {99, 9, 8, 7, 6}
    assert len(found) == 1 + PROBES_AT_ONCE
