"""One call of the API as a value, and when it may be made again. No network and no clock: the clients have those."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from tidings.decisions.texts import json_payload
from tidings.model.event import EventLimits
from tidings.remote.errors import ApiError, OutcomeUnknown, TooOften, Unavailable

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
PAGE_SIZE = 100
# What may be stored is the server's to say; here only that it is JSON.
_ANYTHING = EventLimits(max_payload=2**20, max_nesting=500)


@dataclass(frozen=True)
class Call(Generic[T]):
    """`is_repeatable`: made twice it does what it would do once."""

    method: str
    path: str
    answer: Any
    query: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = True

    def read(self, body: bytes) -> T:
        answer: T = msgspec.json.decode(body, type=self.answer)
        return answer


def get(path: str, answer: Any, **query: Any) -> Call[Any]:
    """What is None or '' is left out of the query."""
    return Call("GET", path, answer, {name: _text(value) for name, value in query.items() if value not in (None, "")})


def post(path: str, answer: Any, given: Mapping[str, Any] | None = None, *, is_repeatable: bool = True) -> Call[Any]:
    return Call("POST", path, answer, body=json_of(given), is_repeatable=is_repeatable)


def json_of(given: Mapping[str, Any] | None) -> bytes | None:
    """What is None is left out."""
    if given is None:
        return None
    return msgspec.json.encode({name: value for name, value in given.items() if value is not None})


def raw_json(payload: Any) -> msgspec.Raw:
    """JSON text (str, bytes) as it is; values become JSON."""
    return msgspec.Raw(json_payload(payload, _ANYTHING).encode())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def pause_before_repeating(call: Call[Any], error: Exception, was_sent: bool, attempt: int, chance: float) -> float:
    """How many seconds to wait before making the call again; below 0 if it must not be.

    `was_sent` is false where the API can't have got the call; `chance` lies between 0 and 1.
    """
    match error:
        case TooOften() | Unavailable():
            may = True  # refused: it was not done
        case OutcomeUnknown():
            may = call.is_repeatable
        case ApiError():
            may = error.status in (502, 504) and call.is_repeatable
        case _:
            may = call.is_repeatable or not was_sent
    if not may:
        return -1
    own: float = min(FIRST_PAUSE * 2.0**attempt, LONGEST_PAUSE) * (0.5 + chance / 2)
    asked_for = error.retry_after if isinstance(error, ApiError) else None
    if asked_for is None:
        return own
    return -1 if asked_for > LONGEST_PAUSE else max(asked_for, own)
