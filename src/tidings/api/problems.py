"""What can be wrong with a request, as RFC 9457 has it: one list of kinds, and one place that knows our errors."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from tidings.errors import (
    Conflict,
    GateClosed,
    InputRefused,
    LimitReached,
    LockTimedOut,
    LoginRefused,
    NotFound,
    OutcomeUnknown,
    RoomMissing,
    RouterHeld,
    SchemaError,
    SecretsUnusable,
    ServerUnreachable,
    TidingsError,
    TransientFailure,
)

CONTENT_TYPE = "application/problem+json"
# Of more parts that are wrong nobody is told at once.
MOST_TOLD = 20


@dataclass(frozen=True)
class Kind:
    status: int
    title: str


KINDS: Mapping[str, Kind] = {
    "malformed": Kind(400, "The request can't be read"),
    "bad_cursor": Kind(400, "The cursor is not one of this list"),
    "unauthenticated": Kind(401, "A valid key is needed"),
    "forbidden": Kind(403, "This key does not allow that"),
    "not_found": Kind(404, "There is no such thing"),
    "method_not_allowed": Kind(405, "This can't be done there"),
    "too_slow": Kind(408, "The request took too long to arrive"),
    "conflict": Kind(409, "It is not in a state for that"),
    "gate_closed": Kind(409, "A gate is closed"),
    "router_held": Kind(409, "The router holds"),
    "precondition_failed": Kind(412, "It was changed meanwhile"),
    "too_large": Kind(413, "The request is too large"),
    "unsupported_media_type": Kind(415, "Only JSON is taken"),
    "invalid": Kind(422, "The request is not valid"),
    "limit_reached": Kind(429, "It was asked for too often"),
    "internal": Kind(500, "Something went wrong here"),
    "unavailable": Kind(503, "It can't be done just now"),
    "outcome_unknown": Kind(503, "Whether it was done is not known"),
}
_OF_STATUS = {
    400: "malformed",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "too_slow",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    503: "unavailable",
}
_WORDS = {404: "There is nothing at this path.", 405: "This method is not for this path."}
_RETRY = {"Retry-After": "1"}
_OUTCOME_UNKNOWN = (
    "The connection to the database was lost while this was being stored. Ask again: the same external id, or the same"
    " Idempotency-Key, is stored once."
)
# The first that fits: of two kinds of which one is the other's, the closer one comes first.
_UNAVAILABLE: Mapping[tuple[type[TidingsError], ...], str] = {
    (LockTimedOut,): "A transaction that is still open holds the same external id; outcome: not stored, try again.",
    (TransientFailure, ServerUnreachable): "The database is not ready; outcome: not stored. Try again.",
    (RoomMissing,): "The database has no room left; outcome: not stored. Try again when there is some.",
    (SchemaError, LoginRefused, SecretsUnusable): "This server is not set up rightly; `tidings doctor` says more.",
}


class FieldProblem(BaseModel):
    """One part of the request that is wrong."""

    pointer: str = Field(
        description="JSON pointer into the body, or `?name` for a query parameter, `#name` for others."
    )
    detail: str = Field(
        description="What is wrong with it, and what would be right.", examples=["has a space in it; write order.paid"]
    )


class Problem(BaseModel):
    """An error, as RFC 9457 describes it. `code` is stable, the sentences are for people."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:tidings:problem:not_found",
                    "title": "There is no such thing",
                    "status": 404,
                    "detail": "There is no event 12.",
                    "instance": "/v1/events/12",
                    "code": "not_found",
                    "request_id": "req-5f0c1c2e8d0b4b6c9d6f3f0f5a1b2c3d",
                    "errors": [],
                }
            ]
        }
    )

    type: str = Field(description="`urn:tidings:problem:` and the code.")
    title: str = Field(description="What kind of problem this is, in words.")
    status: int = Field(description="The HTTP status, once more.", examples=[404])
    detail: str = Field(description="What was wrong this time, and what to do.", examples=["There is no event 12."])
    instance: str = Field(description="The path that was asked for.")
    code: str = Field(description=f"One of: {', '.join(KINDS)}.", json_schema_extra={"enum": [*KINDS]})
    request_id: str = Field(description="Under which the server knows this request; also in the header X-Request-Id.")
    errors: list[FieldProblem] = Field(description="The parts of the request that are wrong, if any can be named.")


class Refused(Exception):
    """A request that is refused by the API itself."""

    def __init__(
        self,
        code: str,
        detail: str,
        errors: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.headers = dict(headers or {})


def of_error(error: TidingsError) -> Refused:
    """What the caller is told of it. Nothing of the database's own words: they may quote rows and addresses."""
    match error:
        case InputRefused():
            told = [(f"/{part.field}", part.what) for part in error.parts if part.field]
            return Refused("invalid", _said(error), told)
        case NotFound():
            return Refused("not_found", error.what)
        case Conflict():
            return Refused("conflict", _said(error))
        case LimitReached():
            return Refused("limit_reached", _said(error), headers={"Retry-After": "60"})
        case GateClosed():
            return Refused("gate_closed", _said(error))
        case RouterHeld():
            return Refused("router_held", error.what)
        case OutcomeUnknown():
            return Refused("outcome_unknown", _OUTCOME_UNKNOWN, headers=_RETRY)
    for kinds, detail in _UNAVAILABLE.items():
        if isinstance(error, kinds):
            return Refused("unavailable", detail, headers=_RETRY)
    return Refused("internal", "This is our fault; the server's log says more under this request id.")


def of_http(error: HTTPException) -> Refused:
    """What the framework refuses."""
    status = error.status_code
    code = _OF_STATUS.get(status, "internal" if status >= 500 else "malformed")
    return Refused(code, _WORDS.get(status, str(error.detail)), headers=error.headers)


def document(refused: Refused, path: str, request_id: str) -> tuple[int, bytes]:
    """Status and body. Plain ASCII, whatever was in the request."""
    kind = KINDS[refused.code]
    said: dict[str, Any] = {
        "type": f"urn:tidings:problem:{refused.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": refused.detail,
        "instance": path,
        "code": refused.code,
        "request_id": request_id,
        "errors": [{"pointer": pointer, "detail": detail} for pointer, detail in refused.errors],
    }
    return kind.status, json.dumps(said).encode()


def _said(error: TidingsError) -> str:
    return f"{error.what} {error.remedy}".strip()
