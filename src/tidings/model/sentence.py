"""A sentence for people that knows how it was made: by its name and its values it can be said in another language."""

import datetime
from collections.abc import Mapping
from typing import Any, Self


class Sentence(str):
    """English text, and nothing else to whoever only reads it. Values may be sentences, moments and spans of time."""

    name: str
    values: Mapping[str, Any]

    def __new__(cls, text: str, name: str = "", values: Mapping[str, Any] | None = None) -> Self:
        made = super().__new__(cls, text)
        made.name, made.values = name, dict(values or {})
        return made


def sentence(texts: Mapping[str, str], name: str, values: Mapping[str, Any]) -> Sentence:
    """The one of this name, with these values in it."""
    return Sentence(texts[name].format_map({key: _written(value) for key, value in values.items()}), name, values)


def _written(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).strftime("%H:%M:%S UTC")
    return _span(value.total_seconds()) if isinstance(value, datetime.timedelta) else value


def _span(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
