"""How events are published, whoever speaks to the database: a generator that asks statements and is sent their rows.

External ids are looked up before anything is inserted, so that known duplicates draw no ids. It commits nothing.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tidings.db.asking import Ask, Flow, batches, text_size
from tidings.errors import EventRefused
from tidings.model.event import NewEvent, Published

Key = tuple[str, str]
"""Domain, and external id as the hex of its UTF-8: rows come back so, as a caller's session may have any charset."""


@dataclass(frozen=True)
class Found:
    """An event that was there before us."""

    id: int
    digest: str


def publishing(events: Sequence[NewEvent]) -> Flow[list[Published]]:
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


def _find(statement: str, events: Sequence[NewEvent]) -> Flow[dict[Key | None, Found]]:
    found: dict[Key | None, Found] = {}
    for batch in batches(events, payload_size):
        rows = yield Ask(statement, {"keys": [(event.event_domain, event.external_id) for event in batch]})
        found |= {(row["event_domain"], row["external_key"]): Found(row["id"], row["digest"]) for row in rows}
    return found


def _insert(events: Sequence[NewEvent]) -> Flow[list[int | None]]:
    """The id of each event, or None where the database left it out because its external id was taken meanwhile."""
    ids: list[int | None] = []
    for batch in batches(events, payload_size):
        rows = yield Ask("insert_events", {"events": [_columns(event) for event in batch]})
        by_key = {(row["event_domain"], row["external_key"]): row["id"] for row in rows if row["external_key"]}
        # They have no key to be known by, but ids ascend in the order of insertion.
        in_order = iter(sorted(row["id"] for row in rows if not row["external_key"]))
        without_key = [event for event in batch if event.external_id is None]
        if len(rows) - len(by_key) != len(without_key):
            raise _refused(without_key)
        ids += [by_key.get(key) if (key := _key(event)) else next(in_order) for event in batch]
    return ids


def payload_size(event: NewEvent) -> int:
    """In bytes."""
    return text_size(event.payload)


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
