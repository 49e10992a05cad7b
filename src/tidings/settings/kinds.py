"""The kinds of settings which have limits, choices or items; a field of a section names its kind."""

from collections.abc import Callable
from typing import TypeVar

from tidings.settings import values
from tidings.settings.texts import read_word
from tidings.settings.values import BadValue, shown, within

Item = TypeVar("Item")

_A_CENTURY = 36_525 * 86_400.0


def duration(*, at_least: float, at_most: float = _A_CENTURY) -> Callable[[object], float]:
    def read(raw: object) -> float:
        seconds = values.read_duration(raw)
        return within(raw, seconds, at_least=at_least, at_most=at_most, say=values.duration_text)

    return read


def duration_or_forever(*, at_least: float) -> Callable[[object], float | None]:
    """`None` stands for forever."""
    read_duration = duration(at_least=at_least)

    def read(raw: object) -> float | None:
        try:
            return None if _is_forever(raw) else read_duration(raw)
        except BadValue as bad:
            raise BadValue(f"{bad}, or forever") from None

    return read


def size(*, at_least: int, at_most: int) -> Callable[[object], int]:
    def read(raw: object) -> int:
        return within(raw, values.read_size(raw), at_least=at_least, at_most=at_most, say=values.size_text)

    return read


def whole_number(*, at_least: int, at_most: int) -> Callable[[object], int]:
    def read(raw: object) -> int:
        return within(raw, values.read_whole_number(raw), at_least=at_least, at_most=at_most, say=str)

    return read


def number(*, at_least: float, at_most: float) -> Callable[[object], float]:
    def read(raw: object) -> float:
        return within(raw, values.read_number(raw), at_least=at_least, at_most=at_most, say=str)

    return read


def choice(*choices: str) -> Callable[[object], str]:
    def read(raw: object) -> str:
        word = read_word(raw).lower()
        if word not in choices:
            raise BadValue(f"{shown(raw)} is not among the choices; write one of {', '.join(choices)}")
        return word

    return read


def list_of(read_item: Callable[[object], Item]) -> Callable[[object], tuple[Item, ...]]:
    """Written as an array in TOML, with commas between the items elsewhere."""

    def read(raw: object) -> tuple[Item, ...]:
        items = raw if isinstance(raw, list) else _split(raw)
        if any(isinstance(item, str) and not item.strip() for item in items):
            raise BadValue("an entry of the list is empty; remove it, or the comma too many")
        return tuple(map(read_item, items))

    return read


def _is_forever(raw: object) -> bool:
    return isinstance(raw, str) and raw.strip().lower() == "forever"


def _split(raw: object) -> list[str]:
    if not isinstance(raw, str):
        raise BadValue('this is no list; write ["one", "two"] in TOML, or one,two')
    return raw.split(",") if raw.strip() else []
