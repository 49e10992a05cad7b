"""What can go wrong with a call, as exceptions: one for each kind of problem that a program may want to catch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from tidings.errors import TidingsError


@dataclass(frozen=True)
class FieldError:
    """A part of the request that is wrong: a JSON pointer into the body, `?name` of the query, or `#name`."""

    pointer: str
    detail: str


class ApiUnreachable(TidingsError):
    """Nobody answered, or not in time. Whether it was done is not known, unless nothing could be sent."""


class ApiError(TidingsError):
    """The API refused a call. `code` is stable, one of the list in the reference; the sentences are for people."""

    def __init__(self, status: int, problem: Mapping[str, Any], request_id: str, retry_after: float | None) -> None:
        self.status = status
        self.code = str(problem.get("code", "unknown"))
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail", "")) or f"The API answered {status}."
        self.request_id = str(problem.get("request_id") or request_id)
        self.errors = tuple(
            FieldError(str(one.get("pointer", "")), str(one.get("detail", "")))
            for one in _objects(problem.get("errors"))
        )
        self.retry_after = retry_after
        super().__init__(self.detail, f"{self.code}, request {self.request_id}" if self.request_id else self.code)


class KeyRefused(ApiError):
    """401: no key, or none that is valid here."""


class NotAllowed(ApiError):
    """403: the key does not allow that."""


class Missing(ApiError):
    """404: there is no such thing."""


class NotPossible(ApiError):
    """409: it is not in a state for that, a gate is closed, or the router holds."""


class ChangedMeanwhile(ApiError):
    """412: it is not what `if_match` says any more."""


class Invalid(ApiError):
    """400, 413, 415, 422: the request itself is wrong; `errors` says where."""


class TooOften(ApiError):
    """429: it was asked for too often; `retry_after` says how many seconds to wait."""


class Unavailable(ApiError):
    """503 `unavailable`: it was not done, and may be asked for again."""


class OutcomeUnknown(ApiError):
    """503 `outcome_unknown`: it may have been done. Publishing the same again under the same key is safe."""


_OF_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    401: KeyRefused,
    403: NotAllowed,
    404: Missing,
    409: NotPossible,
    412: ChangedMeanwhile,
    413: Invalid,
    415: Invalid,
    422: Invalid,
    429: TooOften,
    503: Unavailable,
}


def error_of(status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Whoever answered: a proxy in between knows nothing of our documents."""
    try:
        problem = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = {}
    problem = problem if isinstance(problem, dict) else {}
    kind = _OF_STATUS.get(status, ApiError)
    if problem.get("code") == "outcome_unknown":
        kind = OutcomeUnknown
    return kind(status, problem, headers.get("x-request-id", ""), _seconds(headers.get("retry-after", "")))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 9 else None
