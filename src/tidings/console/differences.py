"""What an entry of the audit log says, as rows that can be read: of each field what it was, and what it is. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_PAIRS = (("before", "after"), ("from", "to"))


@dataclass(frozen=True)
class Difference:
    """`before` is None where nothing was before, or where only what is new was written down."""

    field: str
    before: str | None
    after: str | None


def differences(detail: Any) -> list[Difference]:
    """Of two states only what differs; of everything else all of it."""
    if isinstance(detail, Mapping):
        return [*_found(detail)]
    return [] if detail is None else [Difference("", None, _text(detail))]


def _found(detail: Mapping[str, Any]) -> Iterator[Difference]:
    paired: set[str] = set()
    for was, became in _PAIRS:
        if was in detail and became in detail:
            paired |= {was, became}
            yield from _between(detail[was], detail[became])
    for name, value in detail.items():
        if name in paired:
            continue
        if pair := _pair(value):
            yield from _between(*pair, name)
        elif value is not None:
            yield Difference(name, None, _text(value))


def _pair(value: Any) -> tuple[Any, Any] | None:
    """Two states, if a value is those and nothing else."""
    for was, became in _PAIRS:
        if isinstance(value, Mapping) and set(value) == {was, became}:
            return value[was], value[became]
    return None


def _between(was: Any, became: Any, of: str = "") -> Iterator[Difference]:
    if not (isinstance(was, Mapping) or isinstance(became, Mapping)):
        yield Difference(of, _text(was), _text(became))
        return
    before, after = (one if isinstance(one, Mapping) else {} for one in (was, became))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name) or (name in before) != (name in after):
            field = f"{of}.{name}" if of else name
            yield Difference(field, _said(before, name), _said(after, name))


def _said(state: Mapping[str, Any], name: str) -> str | None:
    return _text(state[name]) if name in state else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
