"""Pages of lists for programs: each row that was there before the first page comes exactly once, while others write.

They go along ids, or along what never changes in a row. Where no index serves a filter, a page looks at a bounded
number of rows and may be short, or empty; only `None` as the next place says that it was the last.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.errors import NotFound
from tidings.model.saga import SagaStatus
from tidings.roles.observer.subscriptions import SeenSubscription, seen

END = 2**63 - 1
# How many rows one page looks at, where it has to look for what fits.
WINDOW = 2_000
_EVER = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
_NEVER = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)
_SHOWN_OF_ONE = 200

Shown = Mapping[str, Any]
Place = list[Any]
"""Where the next page begins, as a cursor carries it."""


@dataclass(frozen=True)
class Page:
    items: Sequence[Any]
    next: Place | None


@dataclass(frozen=True)
class EventFilter:
    """At most one of type, correlation id and time; '' and None stand for any."""

    event_domain: str = ""
    event_type: str = ""
    correlation_id: str = ""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    @property
    def is_of_time(self) -> bool:
        return self.since is not None or self.until is not None


class PageObserver(Operations):
    """Its statements are the observer's own. An `event_domain` of '' is every domain."""

    async def events(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        if filter.is_of_time:
            return await self._events_of_time(filter, limit, place)
        before = place[0] if place else END
        if filter.correlation_id:
            rows = await self._rows(
                "events_with_correlation_id",
                correlation_id=filter.correlation_id,
                event_domain=filter.event_domain,
                before=before,
                limit=limit,
            )
            return _page(rows, limit)
        of_type = {"event_type": filter.event_type} if filter.event_type else {}
        if filter.event_domain:
            names = (
                ("event_of_type_floor", "events_of_type_and_domain") if of_type else ("event_floor", "events_of_domain")
            )
            return await self._between(*names, before, limit, of_type, {**of_type, "event_domain": filter.event_domain})
        name = "events_of_type_before" if of_type else "events_before"
        return _page(await self._rows(name, before=before, limit=limit, **of_type), limit)

    async def _events_of_time(self, filter: EventFilter, limit: int, place: Place | None) -> Page:
        until, before = (_moment(place[0]), place[1]) if place else (filter.until or _NEVER, END)
        rows = await self._rows(
            "events_before_moment", since=filter.since or _EVER, until=until, before=before, limit=limit
        )
        return _page(rows, limit, lambda row: [row["created_at"].isoformat(), row["id"]])

    async def event_with_external_id(self, event_domain: str, external_id: str) -> Page:
        rows = await self._rows("events_with_external_id", event_domain=event_domain, external_id=external_id)
        return Page([dict(row) for row in rows], None)

    async def event(self, id: int, event_domain: str = "") -> Shown:
        """One event with its whole trace: decisions, deliveries with their attempts, tasks."""
        row = await self._row("event", id=id)
        if row is None or event_domain not in ("", row["event_domain"]):
            raise _no("event", id)
        sagas = await self._rows("sagas_of_event", event_id=id, before=END, limit=_SHOWN_OF_ONE)
        jobs = await self._rows("jobs_of_event", event_id=id, limit=5 * _SHOWN_OF_ONE)
        return {
            **row,
            "route_attempts": _dicts(await self._rows("attempts_of_event", event_id=id, limit=_SHOWN_OF_ONE)),
            "route_dead_letters": _dicts(await self._rows("route_dead_letters_of_event", event_id=id)),
            "sagas": [{**saga, "jobs": [_job(job) for job in jobs if job["saga_id"] == saga["id"]]} for saga in sagas],
            "tasks": _dicts(await self._rows("tasks_of_event", event_id=id, biz_key=str(id))),
        }

    async def subscriptions(self, event_domain: str, limit: int, place: Place | None) -> Page:
        after = place[0] if place else 0
        if event_domain:
            rows = await self._rows("subscriptions_of_domain", event_domain=event_domain, after=after, limit=limit)
        else:
            rows = await self._rows("subscriptions", after=after, limit=limit)
        return Page([seen(row) for row in rows], [rows[-1]["id"]] if len(rows) == limit else None)

    async def subscription(self, id: int, event_domain: str = "") -> SeenSubscription:
        row = await self._row("subscription", id=id)
        if row is None or event_domain not in ("", row["event_domain"]):
            raise _no("subscription", id)
        return seen(row)

    async def sagas(
        self, event_domain: str, status: str, subscription_id: int, limit: int, place: Place | None
    ) -> Page:
        """Newest first."""
        before = place[0] if place else END
        if not (event_domain or status or subscription_id):
            return _page(await self._rows("sagas_before", before=before, limit=limit), limit)
        fitting = {"event_domain": event_domain, "status": status, "subscription_id": subscription_id}
        return await self._between("saga_floor", "sagas_between", before, limit, {}, fitting)

    async def open_sagas(self, status: SagaStatus, subscription_id: int, limit: int, place: Place | None) -> Page:
        """Of one status that is not final, the longest due first. What is due anew meanwhile may come again."""
        since, after = (_moment(place[0]), place[1]) if place else (_EVER, 0)
        arguments = {"status": status.value, "since": since, "after": after, "limit": limit}
        if subscription_id:
            rows = await self._rows("open_sagas_of_subscription", subscription_id=subscription_id, **arguments)
        else:
            rows = await self._rows("open_sagas", **arguments)
        return _page(rows, limit, lambda row: [row["next_attempt_at"].isoformat(), row["id"]])

    async def sagas_of_event(self, event_id: int, event_domain: str, limit: int, place: Place | None) -> Page:
        if event_domain and not await self._is_of_domain(event_id, event_domain):
            return Page([], None)
        before = place[0] if place else END
        rows = await self._rows("sagas_of_event", event_id=event_id, before=before, limit=limit)
        return _page(rows, limit)

    async def saga(self, id: int, event_domain: str = "") -> Shown:
        row = await self._row("saga", id=id)
        if row is None or (event_domain and not await self._is_of_domain(row["event_id"], event_domain)):
            raise _no("saga", id)
        jobs = await self._rows("jobs_of_saga", saga_id=id, limit=_SHOWN_OF_ONE)
        return {**row, "jobs": [_job(job) for job in jobs]}

    async def dead_letters(
        self, event_domain: str, subscription_id: int, error_code: str, limit: int, place: Place | None
    ) -> Page:
        before = place[0] if place else END
        if subscription_id and not (event_domain or error_code):
            name = "dead_letters_of_subscription_before"
            return _page(await self._rows(name, subscription_id=subscription_id, before=before, limit=limit), limit)
        if not (event_domain or error_code):
            return _page(await self._rows("dead_letters_before", before=before, limit=limit), limit)
        fitting = {"event_domain": event_domain, "subscription_id": subscription_id, "error_code": error_code}
        return await self._between("dead_letter_floor", "dead_letters_between", before, limit, {}, fitting)

    async def dead_letter(self, id: int, event_domain: str = "") -> Shown:
        row = await self._row("dead_letter", id=id)
        if row is None or (event_domain and not await self._is_of_domain(row["event_id"], event_domain)):
            raise _no("dead letter", id)
        return dict(row)

    async def _is_of_domain(self, event_id: int, event_domain: str) -> bool:
        row = await self._row("domain_of_event", id=event_id)
        return row is not None and row["event_domain"] == event_domain

    async def _between(
        self,
        floor_name: str,
        page_name: str,
        before: int,
        limit: int,
        of_floor: Mapping[str, Any],
        fitting: Mapping[str, Any],
    ) -> Page:
        # The floor first: what is committed between the two questions can then be left out of no page.
        floor = await self._row(floor_name, before=before, window=WINDOW, **of_floor)
        if floor is None or floor["floor"] is None:
            return Page([], None)
        rows = await self._rows(page_name, before=before, floor=floor["floor"], limit=limit, **fitting)
        if len(rows) == limit:
            return _page(rows, limit)
        return Page(_dicts(rows), [floor["floor"]] if floor["seen"] == WINDOW else None)


def _page(rows: Sequence[Row], limit: int, place: Callable[[Row], Place] = lambda row: [row["id"]]) -> Page:
    return Page(_dicts(rows), place(rows[-1]) if len(rows) == limit else None)


def _dicts(rows: Sequence[Row]) -> list[Shown]:
    return [dict(row) for row in rows]


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _job(row: Row) -> Shown:
    """What the endpoint answered is shown as text, whatever it was."""
    excerpt = row["response_excerpt"]
    return {**row, "response_excerpt": bytes(excerpt).decode("utf-8", "replace") if excerpt else None}


def _no(what: str, id: int) -> NotFound:
    """The same for what does not exist and for what is of another domain."""
    return NotFound(f"There is no {what} {id}.")
