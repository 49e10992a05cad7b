"""One event: what a producer writes, what the log keeps, and what publishing it came to."""

from dataclasses import dataclass

MAX_PAYLOAD = 256 * 1024
MAX_NESTING = 30


@dataclass(frozen=True)
class EventLimits:
    """What is accepted as a payload: bytes, and levels of objects and arrays."""

    max_payload: int = MAX_PAYLOAD
    max_nesting: int = MAX_NESTING


@dataclass(frozen=True)
class NewEvent:
    """An event that was checked and may be stored. `payload` is JSON text, kept byte for byte."""

    event_type: str
    payload: str
    external_id: str | None
    event_domain: str
    event_stream: str
    correlation_id: str


@dataclass(frozen=True)
class Published:
    """Which event a request came to. A `duplicate` is the first one with this external id."""

    id: int
    duplicate: bool = False
    payload_differs: bool = False


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A row of the log, as far as routing looks at it."""

    id: int
    event_domain: str
    event_type: str
    event_stream: str
    correlation_id: str
