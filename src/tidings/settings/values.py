"""Reads numbers, durations, sizes and truths from TOML or text; what can't be read is a `BadValue`."""

import math
import re
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)

_MILLISECONDS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_BYTES = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "kib": 1024, "mib": 1024**2}
_TRUTHS = dict.fromkeys(("true", "1", "yes", "on"), True) | dict.fromkeys(("false", "0", "no", "off"), False)

_DECIMAL = r"[0-9]+(?:\.[0-9]+)?"
_PLAIN_NUMBER = re.compile(rf"-?{_DECIMAL}")
_WHOLE_NUMBER = re.compile(r"-?[0-9]+")
_DURATION = re.compile(r"\s*".join(rf"(?:({_DECIMAL})\s*{unit})?" for unit in _MILLISECONDS))
_SIZE = re.compile(r"([0-9]{1,15})\s*([a-z]*)")


class BadValue(ValueError):
    """The value, what is wrong with it and what would be right, as one sentence."""


def shown(raw: object) -> str:
    """The value as a message may quote it; never used for secrets."""
    try:
        text = repr(raw)
    except ValueError:  # Python does not print integers of more than 4300 digits
        return "that number"
    return text if len(text) <= 60 else f"{text[:57]}…"


def within(raw: object, value: Number, *, at_least: Number, at_most: Number, say: Callable[[Number], str]) -> Number:
    if value < at_least:
        raise BadValue(f"{shown(raw)} is too little; the least is {say(at_least)}")
    if value > at_most:
        raise BadValue(f"{shown(raw)} is too much; the most is {say(at_most)}")
    return value


def read_number(raw: object) -> float:
    number = _number(raw)
    if number is None:
        raise BadValue(f"{shown(raw)} is no number; write one like 0.5")
    return number


def read_whole_number(raw: object) -> int:
    number = _whole_number(raw)
    if number is None:
        raise BadValue(f"{shown(raw)} is no whole number; write one like 20")
    return number


def read_duration(raw: object) -> float:
    """Seconds."""
    seconds = _number(raw)
    if seconds is None and isinstance(raw, str):
        seconds = _seconds(raw.strip())
    if seconds is None:
        raise BadValue(f"{shown(raw)} is no duration; write 30s, 5m, 6h, 1d or a number of seconds")
    return seconds


def read_size(raw: object) -> int:
    """Bytes."""
    size = _whole_number(raw)
    if size is None and isinstance(raw, str):
        size = _bytes(raw.strip().lower())
    if size is None:
        raise BadValue(f"{shown(raw)} is no size; write 300kB, 256KiB, 1MiB or a number of bytes")
    return size


def read_truth(raw: object) -> bool:
    truth = _TRUTHS.get(raw.strip().lower()) if isinstance(raw, str) else raw
    if not isinstance(truth, bool):
        raise BadValue(f"{shown(raw)} is neither true nor false; write one of {', '.join(_TRUTHS)}")
    return truth


def duration_text(seconds: float) -> str:
    """What `read_duration` reads as the same number of milliseconds, e.g. 1h30m."""
    left, words = round(seconds * 1000), ""
    for unit, length in _MILLISECONDS.items():
        amount, left = divmod(left, length)
        words += f"{amount}{unit}" if amount else ""
    return words or "0s"


def size_text(size: int) -> str:
    """What `read_size` reads as the same number of bytes, e.g. 256KiB."""
    for unit, length in (("MiB", 1024**2), ("KiB", 1024)):
        if size and size % length == 0:
            return f"{size // length}{unit}"
    return f"{size} bytes" if size != 1 else "1 byte"


def _number(raw: object) -> float | None:
    if isinstance(raw, str):
        return float(raw.strip()) if _PLAIN_NUMBER.fullmatch(raw.strip()) else None
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return None
    try:
        return float(raw) if math.isfinite(raw) else None
    except OverflowError:
        return math.inf if raw > 0 else -math.inf


def _whole_number(raw: object) -> int | None:
    if isinstance(raw, str) and _WHOLE_NUMBER.fullmatch(raw.strip()):
        try:
            return int(raw.strip())
        except ValueError:  # Python does not read integers of more than 4300 digits
            return None
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _seconds(text: str) -> float | None:
    parts = _DURATION.fullmatch(text)
    if parts is None or not text:
        return None
    amounts = zip(parts.groups("0"), _MILLISECONDS.values(), strict=True)
    return sum(float(amount) * length for amount, length in amounts) / 1000


def _bytes(text: str) -> int | None:
    parts = _SIZE.fullmatch(text)
    if parts is None or parts[2] not in _BYTES:
        return None
    return int(parts[1]) * _BYTES[parts[2]]
