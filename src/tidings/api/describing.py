"""How an operation is declared: who may do it, what it answers, what can go wrong. OpenAPI comes from it too."""

import datetime
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Generic, TypeVar

import orjson
from fastapi import Depends, Header, Path, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from tidings.api.context import By, refuse_unless
from tidings.api.cursors import LONGEST_CURSOR
from tidings.api.problems import CONTENT_TYPE, KINDS, Problem, Refused
from tidings.errors import Conflict
from tidings.model.id import BIGGEST_ID
from tidings.model.key import Caller, Scope

T = TypeVar("T")

_LONGEST_PAGE = 250
VISIBLE, PRINTABLE = r"^[!-~]+$", r"^[^\x00-\x1f\x7f]+$"
_ANYWHERE = ("invalid", "internal", "unavailable", "too_large", "unsupported_media_type", "malformed")

Id = Annotated[int, Path(ge=1, le=BIGGEST_ID, description="Its id.", examples=[12])]
Limit = Annotated[int, Query(ge=1, le=_LONGEST_PAGE, description="How many at most.")]
CursorText = Annotated[
    str | None,
    Query(max_length=LONGEST_CURSOR, description="The `next_cursor` of the page before, with the same filters."),
]
IfMatch = Annotated[
    str | None, Header(description="The ETag that you have seen; nothing is changed if it is another now.")
]
Moment = datetime.datetime


class Shown(BaseModel):
    """What an answer shows: only what is declared, whatever else a row has."""

    model_config = ConfigDict(extra="ignore", from_attributes=True)


class Given(BaseModel):
    """What a request brings: nothing that is not declared."""

    model_config = ConfigDict(extra="forbid")


class Answer(JSONResponse):
    """JSON by orjson, which lets stored JSON text stand as it is."""

    def render(self, content: Any) -> bytes:
        return orjson.dumps(content)


def shown(model: type[Shown], row: Any, **more: Any) -> dict[str, Any]:
    """The declared fields of a row or an object."""
    return model.model_validate({**row, **more} if more else row).model_dump()


def stored_json(text: str | None) -> Any:
    """JSON text that was kept byte for byte, to be shown so."""
    return None if text is None else orjson.Fragment(text)


class PageOf(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T] = Field(description="This page.")
    next_cursor: str | None = Field(
        description="For the next page; null after the last one. A page may be short, or empty, before that."
    )


def about(
    scope: Scope | None,
    answer: Any,
    *codes: str,
    status: int = 200,
    of_all_domains: bool = False,
) -> dict[str, Any]:
    """The arguments of a route. `of_all_domains`: not for keys that are bound to one."""
    secured = ("unauthenticated", "forbidden", "limit_reached") if scope else ()
    wrong = sorted({*_ANYWHERE, *secured, *codes})
    extra: dict[str, Any] = {}
    if scope:
        extra = {"security": [{"key": []}], "x-tidings-scope": str(scope), "x-tidings-all-domains": of_all_domains}
    return {
        "status_code": status,
        "response_class": Answer,
        "response_model": None,
        "responses": {status: {"model": answer, "description": "Done."}, **_problems(wrong)},
        "dependencies": [Depends(_only_known_queries), *([Depends(_allowed(scope, of_all_domains))] if scope else [])],
        "openapi_extra": extra,
    }


def _problems(codes: list[str]) -> dict[int | str, dict[str, Any]]:
    found: dict[int | str, dict[str, Any]] = {}
    for status in sorted({KINDS[code].status for code in codes}):
        titles = [f"{KINDS[code].title} (`{code}`)" for code in codes if KINDS[code].status == status]
        found[status] = {
            "description": "; ".join(titles),
            "content": {CONTENT_TYPE: {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}},
        }
    return found


def _allowed(scope: Scope, of_all_domains: bool) -> Callable[[Caller], Awaitable[None]]:
    async def check(caller: By) -> None:
        refuse_unless(caller, scope)
        if of_all_domains and caller.event_domain is not None:
            raise Refused("forbidden", "This concerns all domains, and this key is bound to one.")

    return check


async def _only_known_queries(request: Request) -> None:
    known: frozenset[str] = request.app.state.queries[request.scope["endpoint"]]
    if unknown := [name for name in request.query_params if name not in known]:
        raise Refused(
            "invalid",
            f"There is no query parameter {unknown[0]!r} here.",
            [(f"?{name}", "is not known here") for name in unknown],
        )


@contextmanager
def refusing_a_race() -> Iterator[None]:
    """What was changed since the caller looked is not what they meant to change."""
    try:
        yield
    except Conflict as error:
        raise Refused("precondition_failed", f"{error.what} {error.remedy}") from error


def in_utc(moment: Moment | None) -> Moment | None:
    """Within what every database knows as a moment."""
    if moment is None:
        return None
    try:
        known = moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)
    except OverflowError:
        known = None
    if known is None or not 1970 < known.year < 9999:
        raise Refused("invalid", "This is no moment that could be meant.", [("?", "must lie between 1971 and 9998")])
    return known


async def own_domain(caller: By) -> str:
    """The only domain that a request may see; '' for all."""
    return caller.event_domain or ""


Domain = Annotated[str, Depends(own_domain)]
