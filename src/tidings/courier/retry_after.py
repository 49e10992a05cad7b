"""Reads the header `Retry-After`: seconds or a date. What is neither is ignored."""

import re
from datetime import UTC, datetime

from tidings.decisions.retrying import LONGEST_RETRY_AFTER

_LONGEST = int(LONGEST_RETRY_AFTER)
_SECONDS = re.compile(rb"[0-9]{1,20}")
_MONTHS = [b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"]
_TIME = rb"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
# The three forms that HTTP knows: its own, that of RFC 850, and that of C.
_DATES = [
    re.compile(rb"[a-z]{3}, (?P<day>\d\d) (?P<month>[a-z]{3}) (?P<year>\d{4}) " + _TIME + rb" gmt"),
    re.compile(rb"[a-z]{6,9}, (?P<day>\d\d)-(?P<month>[a-z]{3})-(?P<year>\d\d) " + _TIME + rb" gmt"),
    re.compile(rb"[a-z]{3} (?P<month>[a-z]{3}) (?P<day>[ \d]\d) " + _TIME + rb" (?P<year>\d{4})"),
]


def retry_after_seconds(value: bytes, now: float) -> int | None:
    """Whole seconds from `now`, at most a day; None if the value can't be understood."""
    text = value.strip(b" \t").lower()
    if _SECONDS.fullmatch(text):
        return min(int(text), _LONGEST)
    instant = _instant(text, now)
    return None if instant is None else int(min(max(instant - now, 0), _LONGEST))


def _instant(text: bytes, now: float) -> float | None:
    found = next((match for form in _DATES if (match := form.fullmatch(text))), None)
    if found is None or found["month"] not in _MONTHS:
        return None
    year = int(found["year"])
    try:
        return datetime(
            year if len(found["year"]) == 4 else _century(now) + year,
            _MONTHS.index(found["month"]) + 1,
            int(found["day"]),
            int(found["hour"]),
            int(found["minute"]),
            min(int(found["second"]), 59),  # a leap second is no second of ours
            tzinfo=UTC,
        ).timestamp()
    except ValueError:
        return None


def _century(now: float) -> int:
    return datetime.fromtimestamp(now, UTC).year // 100 * 100
