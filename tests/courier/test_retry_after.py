"""`Retry-After` in all its forms; what is not one of them is ignored."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.courier.retry_after import retry_after_seconds

NOW = 784_111_770.25  # Sun, 06 Nov 1994 08:49:30 GMT and a bit
DAY = 86_400


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (b"0", 0),
        (b"7", 7),
        (b"  120\t", 120),
        (b"007", 7),
        (b"86400", DAY),
        (b"86401", DAY),
        (b"1000000000000", DAY),
        (b"9" * 20, DAY),
        (b"Sun, 06 Nov 1994 08:49:37 GMT", 6),
        (b"Sunday, 06-Nov-94 08:49:37 GMT", 6),
        (b"Sun Nov  6 08:49:37 1994", 6),
        (b"Sun Nov 16 08:49:37 1994", DAY),
        (b"sun, 06 nov 1994 08:49:37 gmt", 6),
        (b"Sun, 06 Nov 1994 08:49:60 GMT", 28),
        (b"Sat, 05 Nov 1994 08:49:37 GMT", 0),
        (b"Thu, 01 Jan 1970 00:00:00 GMT", 0),
        (b"Fri, 31 Dec 9999 23:59:59 GMT", DAY),
    ],
)
def test_seconds_and_dates_are_understood_up_to_a_day(value: bytes, seconds: int) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"-1",
        b"+1",
        b"1.5",
        b"1e3",
        b"1_000",
        b"0x10",
        b"9" * 21,
        b"9" * 100_000,
        b"soon",
        b"\xff\x00",
        "٣".encode(),
        b"120, 60",
        b"Sun, 06 Nov 1994 08:49:37",
        b"Sun, 06 Nov 1994 08:49:37 CET",
        b"Sun, 06 Foo 1994 08:49:37 GMT",
        b"Sun, 31 Feb 1994 08:49:37 GMT",
        b"Sun, 00 Nov 1994 08:49:37 GMT",
        b"Sun, 06 Nov 1994 24:00:00 GMT",
        b"Sun, 06 Nov 0000 08:49:37 GMT",
        b"1994-11-06T08:49:37Z",
    ],
)
def test_garbage_is_ignored(value: bytes) -> None:
    assert retry_after_seconds(value, NOW) is None


@given(st.binary(max_size=60) | st.from_regex(rb"[a-z]{3}, \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt"), st.floats(0, 1e11))
def test_nothing_makes_it_fail(value: bytes, now: float) -> None:
    seconds = retry_after_seconds(value, now)
    assert seconds is None or 0 <= seconds <= DAY
