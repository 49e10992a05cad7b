"""Publishing, and the log."""

import datetime
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tidings.remote import answers as a
from tidings.remote.calling import PAGE_SIZE, Call, get, raw_json

if TYPE_CHECKING:
    from tidings.client import Event

Moment = datetime.datetime


def publish(
    event_type: str,
    payload: Any,
    *,
    external_id: str | None = None,
    event_domain: str | None = None,
    event_stream: str | None = None,
    correlation_id: str | None = None,
    idempotency_key: str | None = None,
) -> Call[a.PublishedEvent]:
    """Publish one event. A str or bytes as payload is JSON text and is kept byte for byte; a value becomes JSON.

    Without an `external_id` an `idempotency_key` is made and stands for it, so that the call can be made again when its
    answer is lost. With '' as key none is made, and such a call is not made again.
    """
    event = {
        "event_type": event_type,
        "payload": payload,
        "external_id": external_id,
        "event_domain": event_domain,
        "event_stream": event_stream,
        "correlation_id": correlation_id,
    }
    given = _given(event)
    return _publishing([given], msgspec.json.encode(given), a.PublishedEvent, idempotency_key)


def publish_many(
    events: "Iterable[Event | Mapping[str, Any]]", *, idempotency_key: str | None = None
) -> Call[list[a.PublishedEvent]]:
    """Publish up to 100 events, `tidings.Event` or dicts: all are stored, or none."""
    given = [_given(event if isinstance(event, Mapping) else _of_event(event)) for event in events]
    return _publishing(given, msgspec.json.encode(given), list[a.PublishedEvent], idempotency_key)


def events(
    *,
    event_type: str = "",
    correlation_id: str = "",
    external_id: str = "",
    event_domain: str = "",
    since: Moment | None = None,
    until: Moment | None = None,
    page_size: int = PAGE_SIZE,
) -> Call[a.Page[a.Event]]:
    """All events that fit, newest first."""
    return get(
        "/v1/events",
        a.Page[a.Event],
        event_type=event_type,
        correlation_id=correlation_id,
        external_id=external_id,
        event_domain=event_domain,
        since=since,
        until=until,
        limit=page_size,
    )


def event(id: int) -> Call[a.TracedEvent]:
    """One event, with its payload and everything that came of it."""
    return get(f"/v1/events/{id}", a.TracedEvent)


def _publishing(events: Sequence[Mapping[str, Any]], body: bytes, answer: Any, key: str | None) -> Call[Any]:
    is_named = all("external_id" in event for event in events)
    if key is None and not is_named:
        key = str(uuid.uuid4())
    headers = {"Idempotency-Key": key} if key else {}
    return Call("POST", "/v1/events", answer, body=body, headers=headers, is_repeatable=bool(key) or is_named)


def _given(event: Mapping[str, Any]) -> dict[str, Any]:
    """As it is sent; a payload of None is the JSON null."""
    kept = {name: value for name, value in event.items() if value is not None}
    return {**kept, "payload": raw_json(event.get("payload"))}


def _of_event(event: "Event") -> dict[str, Any]:
    """What is as it always is, is left to the server: a key may be bound to another domain."""
    return {name: value for name, value in vars(event).items() if (name, value) != ("event_domain", "default")}
