"""What settings must keep towards each other."""

import pytest

from tests.settings.loading import loaded, problems_of


@pytest.mark.parametrize(
    ("name", "text", "right"),
    [
        ("TIMEOUT_SECONDS", "51s", "timeout_seconds must be at most 50s, to fit in lease_seconds of 1m"),
        ("BASE_DELAY_SECONDS", "7h", "base_delay_seconds must be at most max_delay_seconds, 6h"),
        ("WINDOW_MAX", "4", "window_start must be at most window_max, 4"),
        ("WORKER_SLOTS", "100", "max_in_flight must be at most a quarter of worker_slots, 25"),
        ("HANDLER_TIMEOUT", "5m", "visibility_timeout must be at least 3 × handler_timeout, 15m"),
    ],
)
def test_settings_that_contradict_each_other_are_a_problem(name: str, text: str, right: str) -> None:
    assert problems_of({f"TIDINGS_{name}": text}) == [f"environment: TIDINGS_{name}: {right}"]


def test_a_contradiction_is_told_with_the_places_of_both_settings() -> None:
    assert problems_of({"TIDINGS_LEASE_SECONDS": "8s"}, {"timeout_seconds": "8s"}) == [
        "flag: --timeout-seconds and environment: TIDINGS_LEASE_SECONDS: "
        "timeout_seconds must be at most 6s, to fit in lease_seconds of 8s"
    ]


def test_contradictions_are_told_together_with_other_problems() -> None:
    problems = problems_of({"TIDINGS_PORT": "x", "TIDINGS_WINDOW_MAX": "4", "TIDINGS_TIMEOUT_SECONDS": "1h"})
    assert len(problems) == 3


def test_a_setting_that_could_not_be_read_is_not_compared() -> None:
    (problem,) = problems_of({"TIDINGS_LEASE_SECONDS": "soon", "TIDINGS_TIMEOUT_SECONDS": "1h"})
    assert "'soon' is no duration" in problem


def test_a_short_lease_alone_shortens_the_default_timeout() -> None:
    """Ruling 9: a send starts only if timeout + margin fits what is left of the lease."""
    assert loaded().sending.timeout_seconds == 15
    assert loaded({"TIDINGS_LEASE_SECONDS": "20"}).sending.timeout_seconds == 15
    assert loaded({"TIDINGS_LEASE_SECONDS": "2"}).sending.timeout_seconds == 1.5


@pytest.mark.parametrize("lease", ["1s", "3s", "60s", "1h"])
def test_the_longest_timeout_leaves_a_margin_before_and_after_the_request(lease: str) -> None:
    worker = loaded({"TIDINGS_LEASE_SECONDS": lease}).worker
    assert 0 < worker.send_margin <= 5
    assert worker.longest_timeout + 2 * worker.send_margin == worker.lease_seconds
