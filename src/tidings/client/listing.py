"""Reads the things of a list that a caller gives: objects of ours or dicts, and which of them is refused, and why."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Protocol, TypeVar

from tidings.errors import InputRefused


class Record(Protocol):
    """A dataclass, whatever its fields."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


T = TypeVar("T", bound=Record)
R = TypeVar("R")


def accepted_list(
    given: Iterable[T | Mapping[str, Any]],
    kind: type[T],
    word: str,
    refused: type[InputRefused],
    accept: Callable[[T], R],
) -> list[R]:
    """Each of them as it will be stored, or the first refusal, which says where in the list it stands."""
    return [_accepted(place, one, kind, word, refused, accept) for place, one in enumerate(given)]


def _accepted(
    place: int,
    given: T | Mapping[str, Any],
    kind: type[T],
    word: str,
    refused: type[InputRefused],
    accept: Callable[[T], R],
) -> R:
    try:
        return accept(given if isinstance(given, kind) else _read(given, kind))
    except InputRefused as error:
        field = f"{word}s[{place}]" + (f".{error.field}" if error.field else "")
        raise refused(f"{word.capitalize()} {place} of the list: {error.what}", error.remedy, field=field) from error


def _read(given: Any, kind: type[T]) -> T:
    if not isinstance(given, Mapping):
        raise InputRefused(
            f"it is a {type(given).__name__}.", f"Give tidings.{kind.__name__}(…) or a dict of its fields."
        )
    known = {field.name for field in fields(kind)}
    required = {field.name for field in fields(kind) if field.default is MISSING}
    for wrong, what in ((given.keys() - known, "is no field of it"), (required - given.keys(), "is missing")):
        if wrong:
            name = min(map(str, wrong))
            raise InputRefused(f"{name} {what}.", f"There are {', '.join(sorted(known))}.", field=name)
    return kind(**given)
