"""What the product says in English, in the language of a page: sentences by their names, errors by code and field.

An error's own words follow in brackets: they tell what was wrong this time.
"""

import datetime
from collections.abc import Iterable, Iterator
from typing import Any

from tidings.api.problems import Refused, of_error
from tidings.console.languages import DEFAULT, Words
from tidings.errors import InputRefused, RouteRefused, TidingsError
from tidings.model.sentence import Sentence

_UNITS = {"en": ("ms", "s", "min", "h", "d"), "zh-Hant": ("毫秒", "秒", "分", "小時", "天")}


def duration(seconds: Any, language: str = DEFAULT) -> str:
    """The two biggest parts: 85 ms, 3.2 s, 4 min, 2 h 5 min, 3 d 4 h."""
    value = float(seconds)
    ms, s, min, h, d = _UNITS[language]
    if value < 1:
        return f"{value * 1000:.0f} {ms}"
    if value < 60:
        return f"{value:.1f} {s}".replace(".0", "") if value < 10 else f"{value:.0f} {s}"
    minutes, hours, days = int(value // 60), int(value // 3600), int(value // 86_400)
    if minutes < 60:
        return f"{minutes} {min}"
    if hours < 24:
        return f"{hours} {h} {minutes % 60} {min}" if minutes % 60 else f"{hours} {h}"
    return f"{days} {d} {hours % 24} {h}" if hours % 24 else f"{days} {d}"


def translated(words: Words, area: str, text: str) -> str:
    """A sentence of ours, by the area that has its words; what somebody else wrote stays as it is."""
    if words.language == DEFAULT or not isinstance(text, Sentence) or not words.has(f"{area}.{text.name}"):
        return str(text)
    return words(f"{area}.{text.name}", **{name: _value(words, area, value) for name, value in text.values.items()})


def _value(words: Words, area: str, value: Any) -> Any:
    if isinstance(value, datetime.timedelta):
        return duration(max(0.0, value.total_seconds()), words.language)
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).strftime("%H:%M:%S UTC")
    return translated(words, area, value) if isinstance(value, str) else value


def why_not(words: Words, error: TidingsError | Refused) -> str:
    """All of an error."""
    refused = error if isinstance(error, Refused) else of_error(error)
    own = refused.detail if isinstance(error, Refused) else f"{error.what} {error.remedy}".strip()
    field = error.field if isinstance(error, InputRefused) and len(error.parts) == 1 else ""
    return _in_words(words, own, [*_names(error, field), f"refused.code.{refused.code}"])


def wrong_fields(words: Words, error: InputRefused | Refused) -> dict[str, str]:
    """What is wrong with a form, by field; '' is all of it."""
    if isinstance(error, InputRefused):
        return {part.field: why_not(words, part) for part in error.parts}
    found = {pointer.lstrip("/?#"): own for pointer, own in error.errors}
    told = {field: _in_words(words, own, _names(error, field)) for field, own in found.items()}
    return told or {"": why_not(words, error)}


def _names(error: TidingsError | Refused, field: str) -> Iterator[str]:
    """Of words that fit, the closest first."""
    if field and isinstance(error, RouteRefused):
        yield f"refused.route.{field}"
    if field:
        yield f"refused.field.{field}"


def _in_words(words: Words, own: str, names: Iterable[str]) -> str:
    name = next((name for name in names if words.has(name)), "")
    if words.language == DEFAULT or not name:
        return own
    return words("refused.with_original", said=words(name), original=own)
