"""`tidings.publish`: an event written in the caller's own transaction, so that it exists if and only if that commits.

Nothing here begins, commits or rolls back, and no savepoint is made. The caller's login needs the role
`event_ingest_writer`. On a connection in autocommit each statement is a transaction of its own: a single event is safe
there, of many some may be stored without the others.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.client.driving import drive, then
from tidings.client.listing import accepted_list
from tidings.decisions.accepting import accept
from tidings.errors import EventRefused
from tidings.ids import new_correlation_id
from tidings.model.event import EventLimits, NewEvent
from tidings.roles.ingest.publishing import publishing

_STATEMENTS = "tidings.roles.ingest"
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
    published = drive(connection, _STATEMENTS, schema, publishing([_accepted(event, limits)]))
    return then(published, lambda all: all[0])


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
    accepted = accepted_list(events, Event, "event", EventRefused, lambda event: _accepted(event, limits))
    return drive(connection, _STATEMENTS, schema, publishing(accepted))


def _accepted(event: Event, limits: EventLimits) -> NewEvent:
    return accept(
        event.event_type,
        event.payload,
        external_id=event.external_id,
        event_domain=event.event_domain,
        event_stream=event.event_stream,
        correlation_id=new_correlation_id() if event.correlation_id is None else event.correlation_id,
        limits=limits,
    )
