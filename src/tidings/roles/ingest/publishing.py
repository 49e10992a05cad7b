"""How events are published, whoever speaks to the database: a generator that asks statements and is sent their rows.

External ids are looked up before anything is inserted, so that known duplicates draw no ids. It commits nothing.
"""

import hashlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidings.errors import EventRefused
from tidings.model.event import NewEvent, Published

MOST_ROWS = 500
MOST_BYTES = 4 * 1024 * 1024
"""Of payloads in one statement: written out as hex it still fits in the 16 MiB that MariaDB takes by default."""

Key = tuple[str, str]
"""Domain, and external id as the hex of its UTF-8: rows come back so, as a caller's session may have any charset."""


class Ask(NamedTuple):
    """One statement to be run, by its name in operations.sql."""

    statement: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Found:
    """An event that was there before us."""

    id: int
    digest: str


Rows = Sequence[Mapping[str, Any]]
Publishing = Generator[Ask, Rows, list[Published]]


def publishing(events: Sequence[NewEvent]) -> Publishing:
    """Publishes in the order given; what each event came to, in the same order."""
    keys = [_key(event) for event in events]
    firsts: dict[Key, int] = {}
    for place, key in enumerate(keys):
        if key is not None:
            firsts.setdefault(key, place)
    found = yield from _find("find_events", [events[place] for place in firsts.values()])
    new = [p for p, key in enumerate(keys) if key is None or (firsts[key] == p and key not in found)]
    ids = dict(zip(new, (yield from _insert([events[place] for place in new])), strict=True))
    lost = [place for place, number in ids.items() if number is None]
    found |= yield from _find("find_events_now", [events[place] for place in lost])

    def outcome(place: int) -> Published:
        event, key = events[place], keys[place]
        if number := ids.get(place):
            return Published(number)
        if key in found:
            return Published(found[key].id, duplicate=True, payload_differs=found[key].digest != _digest(event))
        first = firsts[key] if key else place
        if not (number := ids.get(first)):
            raise _refused([event])
        return Published(number, duplicate=True, payload_differs=events[first].payload != event.payload)

    return [outcome(place) for place in range(len(events))]


def _find(statement: str, events: Sequence[NewEvent]) -> Generator[Ask, Rows, dict[Key | None, Found]]:
    found: dict[Key | None, Found] = {}
    for batch in _batches(events):
        rows = yield Ask(statement, {"keys": [(event.event_domain, event.external_id) for event in batch]})
        found |= {(row["event_domain"], row["external_key"]): Found(row["id"], row["digest"]) for row in rows}
    return found


def _insert(events: Sequence[NewEvent]) -> Generator[Ask, Rows, list[int | None]]:
    """The id of each event, or None where the database left it out because its external id was taken meanwhile."""
    ids: list[int | None] = []
    for batch in _batches(events):
        rows = yield Ask("insert_events", {"events": [_columns(event) for event in batch]})
        by_key = {(row["event_domain"], row["external_key"]): row["id"] for row in rows if row["external_key"]}
        # They have no key to be known by, but ids ascend in the order of insertion.
        in_order = iter(sorted(row["id"] for row in rows if not row["external_key"]))
        without_key = [event for event in batch if event.external_id is None]
        if len(rows) - len(by_key) != len(without_key):
            raise _refused(without_key)
        ids += [by_key.get(key) if (key := _key(event)) else next(in_order) for event in batch]
    return ids


def _batches(events: Sequence[NewEvent]) -> Iterator[list[NewEvent]]:
    """In the same order, so few and so small that one statement can carry each."""
    batch: list[NewEvent] = []
    size = 0
    for event in events:
        more = payload_size(event)
        if batch and (len(batch) == MOST_ROWS or size + more > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += more
    if batch:
        yield batch


def payload_size(event: NewEvent) -> int:
    """In bytes."""
    return len(event.payload) if event.payload.isascii() else len(event.payload.encode())


def _columns(event: NewEvent) -> tuple[str | None, ...]:
    return (
        event.event_domain,
        event.event_type,
        event.event_stream,
        event.external_id,
        event.payload,
        event.correlation_id,
    )


def _key(event: NewEvent) -> Key | None:
    return None if event.external_id is None else (event.event_domain, event.external_id.encode().hex())


def _digest(event: NewEvent) -> str:
    return hashlib.sha256(event.payload.encode()).hexdigest()


def _refused(events: Sequence[NewEvent]) -> EventRefused:
    names = ", ".join(event.external_id or event.event_type for event in events[:3])
    return EventRefused(
        f"The database did not take {'this event' if len(events) == 1 else 'one of these events'}: {names}.",
        "What it refuses, its constraints and triggers say; `tidings doctor` knows those that are ours.",
        field="events",
    )
