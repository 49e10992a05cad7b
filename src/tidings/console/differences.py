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
    return [*_found(detail, "")] if isinstance(detail, Mapping) else _alone("", detail)


def _found(detail: Mapping[str, Any], prefix: str) -> Iterator[Difference]:
    paired: set[str] = set()
    for was, became in _PAIRS:
        if was in detail and became in detail:
            paired |= {was, became}
            yield from _between(detail[was], detail[became], prefix)
    for name, value in detail.items():
        if name in paired:
            continue
        field = f"{prefix}.{name}" if prefix else str(name)
        if _is_pair(value):
            yield from _found(value, field)
        elif value is not None:
            yield Difference(field, None, _text(value))


def _between(was: Any, became: Any, prefix: str) -> Iterator[Difference]:
    if not (isinstance(was, Mapping) or isinstance(became, Mapping)):
        yield Difference(prefix, _text(was), _text(became))
        return
    before, after = (one if isinstance(one, Mapping) else {} for one in (was, became))
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name) or (name in before) != (name in after):
            field = f"{prefix}.{name}" if prefix else str(name)
            yield Difference(field, _said(before, name), _said(after, name))


def _is_pair(value: Any) -> bool:
    return isinstance(value, Mapping) and any(set(value) == set(pair) for pair in _PAIRS)


def _said(state: Mapping[str, Any], name: str) -> str | None:
    return _text(state[name]) if name in state else None


def _alone(field: str, value: Any) -> list[Difference]:
    return [] if value is None else [Difference(field, None, _text(value))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
