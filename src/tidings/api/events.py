"""`/v1/events`: the log, and one event with its whole trace. Publishing, answered by the front, is described here."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from tidings.api.context import Api, Has
from tidings.api.describing import (
    PRINTABLE,
    VISIBLE,
    Answer,
    CursorText,
    Domain,
    Id,
    Limit,
    Moment,
    PageOf,
    Shown,
    about,
    in_utc,
    shown,
    stored_json,
)
from tidings.api.jobs import Job
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.api.publishing import LONGEST_KEY, MOST_EVENTS
from tidings.model.key import Scope
from tidings.roles.observer.filters import EventFilter
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.searching import EventSearcher

router = APIRouter(tags=["events"])


class EventIn(Shown):
    """An event to be published."""

    event_type: str = Field(description="Such as `order.paid`: visible ASCII, at most 100.", examples=["order.paid"])
    payload: Any = Field(description="Any JSON; its text is kept and sent byte for byte.", examples=[{"order": 7}])
    external_id: str | None = Field(
        None,
        description="Your own name for it: the same one again is the same event, stored once.",
        examples=["order-7"],
    )
    event_domain: str | None = Field(
        None, description="`default`, or the domain of the key, when it is left out.", examples=["default"]
    )
    event_stream: str | None = Field(None, description="A further word that routes can look at.", examples=["eu"])
    correlation_id: str | None = Field(None, description="Made when it is left out.", examples=["checkout-7"])


class PublishedEvent(Shown):
    """What publishing an event came to."""

    id: int = Field(description="The event's id.", examples=[12])
    duplicate: bool = Field(description="It had been published before under this external id; nothing was stored now.")
    payload_differs: bool = Field(description="A duplicate, but with another payload; the first one stays.")


class Event(Shown):
    """An event of the log, without its payload."""

    id: int = Field(description="Ascending, with gaps.", examples=[12])
    event_domain: str = Field(description="Its domain.", examples=["default"])
    event_type: str = Field(description="Its type.", examples=["order.paid"])
    event_stream: str = Field(description="Its stream; empty when it has none.")
    external_id: str | None = Field(description="The publisher's own name for it.")
    correlation_id: str = Field(description="What belongs together.")
    created_at: Moment = Field(description="When it was written.")


class RouteAttempt(Shown):
    """What a router decided about an event."""

    id: int = Field(description="Its id.")
    worker_name: str = Field(description="Which router.")
    route_id: int | None = Field(description="By which route; null when none matched.")
    route_kind: str | None = Field(description="webhook or task.")
    status: str = Field(description="sent, dry_run, disabled, skipped or failed.")
    matched: int = Field(description="How many deliveries or tasks were made.")
    reason: str | None = Field(description="Why not more.")
    attempt_no: int = Field(description="Above 1 after a replay.")
    created_at: Moment = Field(description="When.")


class TraceRouteDeadLetter(Shown):
    id: int = Field(description="Its id.")
    worker_name: str = Field(description="Which router set the event aside.")
    created_at: Moment = Field(description="When.")
    resolved_at: Moment | None = Field(description="When a replay succeeded; null if none has.")


class TraceSaga(Shown):
    """The delivery of the event to one subscription, with its attempts."""

    id: int = Field(description="Its id.")
    subscription_id: int = Field(description="To whom.")
    generation: int = Field(description="0 as routed; one more for each requeue or resend.")
    status: str = Field(description="Pending, InProgress, PendingRetry, Completed or DeadLettered.")
    attempt_count: int = Field(description="How many attempts have ended.")
    next_attempt_at: Moment = Field(description="When the next one is due, if there is one.")
    final_error_code: str | None = Field(description="The last error; it stays when a later attempt succeeds.")
    created_at: Moment = Field(description="When it was made.")
    updated_at: Moment = Field(description="When it last changed.")
    jobs: list[Job] = Field(description="Its attempts, the last first.")


class TraceTask(Shown):
    """A task that was made of the event."""

    id: int = Field(description="Its id.")
    biz_type: str = Field(description="Its type.")
    biz_key: str = Field(description="Its business key: the event's id.")
    status: int = Field(description="0 pending, 1 processing, 2 success, 3 to be retried, 4 failed for good.")
    retry_count: int = Field(description="How often it was retried.")
    result_msg: str | None = Field(description="What became of it.")
    updated_at: Moment = Field(description="When it last changed.")


class TracedEvent(Event):
    """An event with its payload and everything that came of it."""

    payload: Any = Field(description="As it was published.")
    route_attempts: list[RouteAttempt] = Field(description="What routers decided.")
    route_dead_letters: list[TraceRouteDeadLetter] = Field(description="Where it could not be routed.")
    sagas: list[TraceSaga] = Field(description="Its deliveries, newest first; at most 200.")
    tasks: list[TraceTask] = Field(description="Its tasks.")


_BODY = {
    "required": True,
    "content": {
        "application/json": {
            "schema": {
                "anyOf": [
                    {"$ref": "#/components/schemas/EventIn"},
                    {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/EventIn"},
                        "minItems": 1,
                        "maxItems": MOST_EVENTS,
                    },
                ]
            },
            "examples": {
                "one": {"value": {"event_type": "order.paid", "payload": {"order": 7}, "external_id": "order-7"}},
                "many": {"value": [{"event_type": "order.paid", "payload": {"order": 8}}]},
            },
        }
    },
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Stands for a missing external_id; in a list, with `:` and the place from 0 behind it.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": VISIBLE},
}
_publishing = about(Scope.PUBLISHER, PublishedEvent | list[PublishedEvent], "outcome_unknown", "too_slow", status=202)
_publishing["openapi_extra"] |= {"requestBody": _BODY, "parameters": [_KEY]}


@router.post("/events", summary="Publish one event, or up to 100", **_publishing)
async def publish() -> None:
    """Answered after commit: all events of a list are stored, or none. An object is answered with an object, a list
    with a list. `outcome_unknown` means that the connection to the database was lost in COMMIT: publish again under the
    same external id, and it is stored once."""
    raise AssertionError("the front answers this")


@router.get("/events", summary="List events", **about(Scope.VIEWER, PageOf[Event], "bad_cursor"))
async def list_events(
    api: Has,
    own: Domain,
    event_type: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only of this type.")] = "",
    correlation_id: Annotated[str, Query(max_length=128, pattern=VISIBLE, description="Only with this one.")] = "",
    external_id: Annotated[
        str,
        Query(max_length=255, pattern=PRINTABLE, description="The one of this name, in `event_domain` or `default`."),
    ] = "",
    event_domain: Annotated[str, Query(max_length=100, pattern=VISIBLE, description="Only of this domain.")] = "",
    since: Annotated[Moment | None, Query(description="Written then or later; UTC where no zone is said.")] = None,
    until: Annotated[Moment | None, Query(description="Written then or before.")] = None,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Answer:
    """Newest first. Type, time and domain go together; a correlation id or an external id goes with a domain only."""
    if sum(map(bool, (correlation_id, external_id, event_type or since or until))) > 1:
        raise Refused("invalid", "correlation_id and external_id can't be combined with others: these have few events.")
    domain = own or event_domain
    if own and event_domain not in ("", own):
        return Answer({"items": [], "next_cursor": None})
    if external_id:
        return await _named(api, domain or "default", external_id, cursor)
    filter = EventFilter(domain, event_type, correlation_id, in_utc(since), in_utc(until))
    return Answer(
        await paged(
            api,
            "events",
            vars(filter),
            cursor,
            EventSearcher,
            lambda searcher, place: searcher.page(filter, limit, place),
            _shown,
        )
    )


async def _named(api: Api, domain: str, external_id: str, cursor: str | None) -> Answer:
    return Answer(
        await paged(
            api,
            "event",
            {"name": external_id},
            cursor,
            PageObserver,
            lambda observer, _: observer.event_with_external_id(domain, external_id),
            _shown,
        )
    )


def _shown(row: Any) -> dict[str, Any]:
    return shown(Event, row)


@router.get("/events/{id}", summary="One event with its whole trace", **about(Scope.VIEWER, TracedEvent, "not_found"))
async def show_event(id: Id, api: Has, own: Domain) -> Answer:
    """The payload, what routers decided, each delivery with its attempts, and the tasks."""
    found = await api.observed(PageObserver, lambda observer: observer.event(id, own))
    return Answer(shown(TracedEvent, found, payload=stored_json(found["payload"])))
