"""`tidings.publish`: an event written in the caller's own transaction, so that it exists if and only if that commits.

Nothing here begins, commits or rolls back, and no savepoint is made. The caller's login needs the role
`event_ingest_writer`. On a connection in autocommit each statement is a transaction of its own: a single event is safe
there, of many some may be stored without the others.
"""

import re
import uuid
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from tidings.client.binding import bind
from tidings.client.connections import opened, recognise
from tidings.client.drivers import OpeningWay, Way
from tidings.db.statements import load_statements
from tidings.decisions.accepting import accept
from tidings.errors import EventRefused, InputRefused
from tidings.model.event import EventLimits, NewEvent, Published
from tidings.roles.ingest.publishing import Ask, publishing

_STATEMENTS = "tidings.roles.ingest"
_SCHEMA = re.compile(r"[a-z][a-z0-9_]{0,29}")
_LIMITS = EventLimits()


@dataclass(frozen=True)
class Event:
    """One event of `publish_many`. `payload` is JSON text, or a value that becomes JSON."""

    event_type: str
    payload: Any
    external_id: str | None = None
    event_domain: str = "default"
    event_stream: str = ""
    correlation_id: str | None = None


_FIELDS = frozenset(field.name for field in fields(Event))
_REQUIRED = frozenset({"event_type", "payload"})


def publish(
    connection: Any,
    event_type: str,
    payload: Any,
    *,
    external_id: str | None = None,
    event_domain: str = "default",
    event_stream: str = "",
    correlation_id: str | None = None,
    schema: str = "tidings",
    limits: EventLimits = _LIMITS,
) -> Any:
    """Writes one event on the caller's connection: a `Published`, or an awaitable of it if the connection is async.

    A str or bytes as payload is JSON text and is kept byte for byte; anything else becomes JSON. An `external_id` that
    was published before gives the first event again, as a duplicate.
    """
    event = Event(event_type, payload, external_id, event_domain, event_stream, correlation_id)
    published = _publish_on(connection, [_accepted(event, limits)], schema)
    return published[0] if isinstance(published, list) else _first_of(published)


def publish_many(
    connection: Any,
    events: Iterable[Event | Mapping[str, Any]],
    *,
    schema: str = "tidings",
    limits: EventLimits = _LIMITS,
) -> Any:
    """The same for many, in few statements: a list of `Published` in the order given, or an awaitable of it.

    If one of them is refused, nothing was written.
    """
    accepted = [_accepted_in_list(place, event, limits) for place, event in enumerate(events)]
    return _publish_on(connection, accepted, schema)


def _accepted(event: Event, limits: EventLimits) -> NewEvent:
    return accept(
        event.event_type,
        event.payload,
        external_id=event.external_id,
        event_domain=event.event_domain,
        event_stream=event.event_stream,
        correlation_id=str(uuid.uuid4()) if event.correlation_id is None else event.correlation_id,
        limits=limits,
    )


def _accepted_in_list(place: int, event: Event | Mapping[str, Any], limits: EventLimits) -> NewEvent:
    try:
        return _accepted(event if isinstance(event, Event) else _event(event), limits)
    except EventRefused as error:
        field = f"events[{place}]" + (f".{error.field}" if error.field else "")
        raise EventRefused(f"Event {place} of the list: {error.what}", error.remedy, field=field) from error


def _event(given: Mapping[str, Any]) -> Event:
    if not isinstance(given, Mapping):
        raise EventRefused(f"it is a {type(given).__name__}.", "Give tidings.Event(…) or a dict of its fields.")
    for wrong, what in ((given.keys() - _FIELDS, "is no field of an event"), (_REQUIRED - given.keys(), "is missing")):
        if wrong:
            name = min(map(str, wrong))
            raise EventRefused(f"{name} {what}.", f"An event has {', '.join(sorted(_FIELDS))}.", field=name)
    return Event(**given)


def _publish_on(
    connection: Any, events: list[NewEvent], schema: str
) -> list[Published] | Coroutine[Any, Any, list[Published]]:
    way, named = recognise(connection), _named(schema)
    if isinstance(way, Way) and not way.is_async:
        return _publish(way, events, named)
    return _publish_async(way, connection, events, named)


def _publish(way: Way, events: list[NewEvent], schema: str) -> list[Published]:
    flow = publishing(events)
    try:
        ask = next(flow)
        while True:
            ask = flow.send(way.fetch(*_bound(way, ask, schema)))
    except StopIteration as end:
        return _published(end)


async def _publish_async(
    way: Way | OpeningWay, connection: Any, events: list[NewEvent], schema: str
) -> list[Published]:
    way = await opened(way, connection)
    flow = publishing(events)
    try:
        ask = next(flow)
        while True:
            ask = flow.send(await way.fetch(*_bound(way, ask, schema)))
    except StopIteration as end:
        return _published(end)


async def _first_of(published: Awaitable[list[Published]]) -> Published:
    return (await published)[0]


def _published(end: StopIteration) -> list[Published]:
    published: list[Published] = end.value
    return published


def _bound(way: Way, ask: Ask, schema: str) -> tuple[str, tuple[Any, ...]]:
    return bind(load_statements(_STATEMENTS, way.dialect, schema)[ask.statement], ask.arguments, way.mark)


def _named(schema: str) -> str:
    if not isinstance(schema, str) or not _SCHEMA.fullmatch(schema):
        raise InputRefused(
            f"{schema!r} is no name of a schema of Tidings.", "Give the one that the settings have.", field="schema"
        )
    return schema
