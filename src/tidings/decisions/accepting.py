"""Decides what may be stored as an event: only what every engine keeps and gives back byte for byte."""

from typing import Any

from tidings.decisions.texts import LONGEST_NAME, RefusingAs, json_payload, printable_text, refuse, visible_name
from tidings.errors import EventRefused
from tidings.model.event import EventLimits, NewEvent


def accept(
    event_type: str,
    payload: Any,
    *,
    correlation_id: str,
    limits: EventLimits,
    external_id: str | None = None,
    event_domain: str = "default",
    event_stream: str = "",
) -> NewEvent:
    """The event as it will be stored, or EventRefused. JSON text (str, bytes) stays as it is; values become JSON."""
    with RefusingAs(EventRefused):
        return NewEvent(
            event_type=_plain_name(event_type, "event_type"),
            payload=json_payload(payload, limits),
            external_id=None if external_id is None else _external_id(external_id),
            event_domain=_plain_name(event_domain, "event_domain"),
            event_stream=_plain_name(event_stream, "event_stream", may_be_empty=True),
            correlation_id=visible_name(correlation_id, "correlation_id", 128),
        )


def _external_id(text: Any) -> str:
    return printable_text(text, "external_id", 255, "Leave it out when there is none.")


def _plain_name(text: Any, field: str, *, may_be_empty: bool = False) -> str:
    if "*" in visible_name(text, field, LONGEST_NAME, may_be_empty=may_be_empty):
        refuse(field, f"is {text!r}", "Only the patterns of routes and subscriptions have a * in them.")
    return str(text)
