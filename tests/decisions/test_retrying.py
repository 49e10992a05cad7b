"""The formula of the delays, against values that were worked out apart from it (ruling 4)."""

import hashlib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.retrying import Backoff, retry_delay

DEFAULT = Backoff(base=5, longest=6 * 3600, jitter=0.1)
PLAIN = Backoff(base=5, longest=6 * 3600, jitter=0)

# Worked out with bc from `printf '%s' 'ID:ATTEMPTS' | sha256sum`.
WORKED = [
    (1, 1, 5.419354002),
    (1, 2, 10.403242987),
    (7, 3, 20.133672789),
    (42, 10, 2811.938221674),
    (42, 16, 23226.050111846),
]


@pytest.mark.parametrize(("id", "attempts", "seconds"), WORKED)
def test_the_delay_is_the_one_anybody_can_compute(id: int, attempts: int, seconds: float) -> None:
    """r01 §6.2: "The backoff formula must be deterministic and documented"."""
    assert retry_delay(DEFAULT, id, attempts) == pytest.approx(seconds, abs=1e-6)


def test_without_jitter_each_delay_is_twice_the_one_before_up_to_the_longest() -> None:
    """r01 §6.2: base_delay * (2^(attempt_count - 1))."""
    delays = [retry_delay(PLAIN, 1, attempts) for attempts in range(1, 16)]
    assert delays == [min(5 * 2**n, 21_600) for n in range(15)]


def test_what_the_endpoint_asked_for_wins_if_it_is_longer_up_to_a_day() -> None:
    """Ruling 4."""
    assert retry_delay(PLAIN, 1, 1, retry_after=3) == 5
    assert retry_delay(PLAIN, 1, 1, retry_after=120) == 120
    assert retry_delay(PLAIN, 1, 1, retry_after=1_000_000) == 86_400


@given(id=st.integers(1, 2**63 - 1), attempts=st.integers(1, 1000), jitter=st.floats(0, 1))
def test_a_delay_is_never_shorter_than_without_jitter_nor_longer_than_with_all_of_it(
    id: int, attempts: int, jitter: float
) -> None:
    least = retry_delay(PLAIN, id, attempts)
    assert least <= retry_delay(Backoff(5, 21_600, jitter), id, attempts) <= least * (1 + jitter) * (1 + 1e-12)


@given(id=st.integers(1, 2**63 - 1), attempts=st.integers(1, 12))
def test_the_spread_is_the_first_eight_bytes_of_the_digest(id: int, attempts: int) -> None:
    part = Fraction(int(hashlib.sha256(f"{id}:{attempts}".encode()).hexdigest()[:16], 16), 2**64)
    exact = Fraction(5) * 2 ** (attempts - 1) * (1 + part)
    assert retry_delay(Backoff(5, 10**9, 1), id, attempts) == pytest.approx(float(exact), rel=1e-12)
