"""Finds events: by what somebody pasted, or by type, domain and time together, a bounded number of rows at a time.

No index has type and time. Ids and times ascend almost together, so a span of time is looked for among the ids
between the events just outside of it, with some room for those that were numbered out of turn.
"""

import datetime
from collections.abc import Sequence
from typing import Any

from tidings.db.operations import Operations
from tidings.model.id import is_id
from tidings.roles.observer import pages
from tidings.roles.observer.filters import EventFilter
from tidings.roles.observer.listing import END, EVER, NEVER, Page, Place, Shown, dicts, moment, page_of
from tidings.roles.observer.pages import PageObserver

# For how long a statement may have been at work between its time and the number of its last event.
ROOM = datetime.timedelta(seconds=60)
# How often a page looks on where nothing has fitted yet.
MOST_LOOKS = 5
_MOST_FOUND = 50
_MOST_OF_ONE = 40


class EventSearcher(PageObserver):
    async def found(self, text: str, event_domain: str) -> list[Shown]:
        """Those whose id, external id or correlation id this is. External ids are of one domain, `default` at least."""
        by_name = await self._rows("events_with_external_id", event_domain=event_domain or "default", external_id=text)
        by_correlation = await self._rows(
            "events_with_correlation_id",
            correlation_id=text,
            event_domain=event_domain,
            before=END,
            limit=_MOST_FOUND,
        )
        id = _id(text)
        by_id = [] if id is None else await self._rows("event", id=id)
        visible = [row for row in by_id if event_domain in ("", row["event_domain"])]
        return [*{row["id"]: dict(row) for row in (*visible, *by_name, *by_correlation)}.values()]

    async def page(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        """The newest first. A page that is short is not the last one unless it says so."""
        items: list[Any] = []
        for _ in range(MOST_LOOKS):
            page = await self._look(filter, limit - len(items), place)
            items += page.items
            place = page.next
            if place is None or len(items) >= limit:
                break
        return Page(items, place)

    async def place_after(self, id: int, filter: EventFilter) -> Place:
        """Where a list goes on behind this event."""
        return _place(await self._event_row(id, "")) if filter.is_of_time else [id]

    async def _look(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        if filter.is_of_time and filter.event_type:
            return await self._of_type_and_time(filter, limit, place)
        if filter.is_of_time and filter.event_domain:
            return await self._of_domain_and_time(filter, limit, place)
        if filter.is_of_time:
            return await self._of_time(filter, limit, place)
        if filter.correlation_id:
            return await self._with_correlation_id(filter, limit, place)
        return await self._by_id(filter, limit, place)

    async def _by_id(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        before = place[0] if place else END
        of_type = {"event_type": filter.event_type} if filter.event_type else {}
        if filter.event_domain:
            names = (
                ("event_of_type_floor", "events_of_type_and_domain") if of_type else ("event_floor", "events_of_domain")
            )
            return await self._between(*names, before, limit, of_type, {**of_type, "event_domain": filter.event_domain})
        name = "events_of_type_before" if of_type else "events_before"
        return page_of(await self._rows(name, before=before, limit=limit, **of_type), limit)

    async def _with_correlation_id(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        rows = await self._rows(
            "events_with_correlation_id",
            correlation_id=filter.correlation_id,
            event_domain=filter.event_domain,
            before=place[0] if place else END,
            limit=limit,
        )
        return page_of(rows, limit)

    async def _of_time(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        span = _span(filter)
        until, before = (moment(place[0]), place[1]) if place else (span["until"], END)
        rows = await self._rows("events_before_moment", since=span["since"], until=until, before=before, limit=limit)
        return page_of(rows, limit, _place)

    async def _of_type_and_time(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        before, bottom = place or await self._ids_around(filter)
        kind = {"event_type": filter.event_type}
        floor = await self._row("event_of_type_floor", before=before, window=pages.WINDOW, **kind)
        if floor is None or floor["floor"] is None:
            return Page([], None)
        lowest = max(floor["floor"], bottom)
        rows = await self._rows(
            "events_of_type_and_time",
            before=before,
            floor=lowest,
            event_domain=filter.event_domain,
            limit=limit,
            **kind,
            **_span(filter),
        )
        if len(rows) == limit:
            return Page(dicts(rows), [rows[-1]["id"], bottom])
        is_last = floor["seen"] < pages.WINDOW or floor["floor"] <= bottom
        return Page(dicts(rows), None if is_last else [lowest, bottom])

    async def _ids_around(self, filter: EventFilter) -> list[int]:
        """Between which ids the span lies for sure."""
        span = _span(filter)
        above = await self._row("first_event_after", moment=span["until"] + ROOM) if filter.until else None
        below = await self._row("last_event_before", moment=span["since"] - ROOM) if filter.since else None
        return [above["id"] if above else END, below["id"] if below else 0]

    async def _of_domain_and_time(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        span = _span(filter)
        until, before = (moment(place[0]), place[1]) if place else (span["until"], END)
        reached = {"until": until, "before": before}
        floor = await self._row("event_time_floor", since=span["since"], window=pages.WINDOW, **reached)
        if floor is None:
            return Page([], None)
        rows = await self._rows(
            "events_of_domain_and_time",
            since=floor["created_at"],
            floor=floor["id"],
            event_domain=filter.event_domain,
            limit=limit,
            **reached,
        )
        if len(rows) == limit:
            return Page(dicts(rows), _place(rows[-1]))
        return Page(dicts(rows), _place(floor) if floor["seen"] == pages.WINDOW else None)


class FateObserver(Operations):
    """What has become of the events of a list so far, at a glance."""

    async def fates(self, ids: Sequence[int]) -> dict[int, dict[str, int]]:
        """Of each event, how many deliveries have which status, the last generation of each; or what was decided."""
        if not ids:
            return {}
        sagas = await self._rows("sagas_of_events", asked=[(id, _MOST_OF_ONE) for id in ids])
        latest: dict[tuple[int, int], Shown] = {}
        for row in sorted(sagas, key=lambda row: int(row["generation"])):
            latest[row["event_id"], row["subscription_id"]] = row
        fates: dict[int, dict[str, int]] = {id: {} for id in ids}
        for (event_id, _), row in latest.items():
            fates[event_id][row["status"]] = fates[event_id].get(row["status"], 0) + 1
        without = [id for id, fate in fates.items() if not fate]
        for row in await self._rows("decisions_about", ids=without) if without else ():
            fates[row["event_id"]][row["status"]] = 0
        return fates


def _id(text: str) -> int | None:
    number = text.removeprefix("event:")
    return int(number) if number.isascii() and number.isdecimal() and len(number) < 20 and is_id(int(number)) else None


def _span(filter: EventFilter) -> dict[str, datetime.datetime]:
    return {"since": filter.since or EVER, "until": filter.until or NEVER}


def _place(row: Shown) -> Place:
    return [row["created_at"].isoformat(), row["id"]]
