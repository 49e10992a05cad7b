"""Pages of lists: each row that was there before the first page comes exactly once, while others write.

They go along ids, or along what never changes in a row. Where no index serves a filter, a page looks at a bounded
number of rows and may be short, or empty; only `None` as the next place says that it was the last.
"""

import datetime
from collections.abc import Mapping
from typing import Any

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.errors import NotFound
from tidings.model.id import is_id
from tidings.model.saga import SagaStatus
from tidings.roles.observer.filters import LetterFilter, SagaFilter, SubscriptionFilter
from tidings.roles.observer.listing import (
    END,
    EVER,
    SHOWN_OF_ONE,
    Page,
    Place,
    Shown,
    dicts,
    moment,
    page_of,
    shown_job,
)
from tidings.roles.observer.subscriptions import SeenSubscription, seen

# How many rows one page looks at, where it has to look for what fits.
WINDOW = 2_000
_OUT_OF_TURN = datetime.timedelta(minutes=10)


class PageObserver(Operations):
    """An `event_domain` of '' is every domain."""

    async def event_with_external_id(self, event_domain: str, external_id: str) -> Page:
        rows = await self._rows("events_with_external_id", event_domain=event_domain, external_id=external_id)
        return Page(dicts(rows), None)

    async def event(self, id: int, event_domain: str = "") -> Shown:
        """One event with its whole trace: decisions, deliveries with their attempts, tasks."""
        row = await self._event_row(id, event_domain)
        sagas = await self._rows("sagas_of_event", event_id=id, before=END, limit=SHOWN_OF_ONE)
        jobs = await self._rows("jobs_of_event", event_id=id, limit=5 * SHOWN_OF_ONE)
        return {
            **row,
            "route_attempts": dicts(await self._rows("attempts_of_event", event_id=id, limit=SHOWN_OF_ONE)),
            "route_dead_letters": dicts(await self._rows("route_dead_letters_of_event", event_id=id)),
            "sagas": [
                {**saga, "jobs": [shown_job(job) for job in jobs if job["saga_id"] == saga["id"]]} for saga in sagas
            ],
            "tasks": dicts(await self._rows("tasks_of_event", event_id=id, biz_key=str(id))),
        }

    async def _event_row(self, id: int, event_domain: str) -> Row:
        row = await self._row("event", id=id)
        if row is None or event_domain not in ("", row["event_domain"]):
            raise _no("event", id)
        return row

    async def subscriptions(self, filter: SubscriptionFilter, limit: int, place: Place | None) -> Page:
        """In the order in which they were made."""
        after = place[0] if place else 0
        if filter == SubscriptionFilter():
            rows = await self._rows("subscriptions", after=after, limit=limit)
            return Page([seen(row) for row in rows], [rows[-1]["id"]] if len(rows) == limit else None)
        end = await self._row("subscription_ceiling", after=after, window=WINDOW)
        if end is None or end["ceiling"] is None:
            return Page([], None)
        rows = await self._rows(
            "subscriptions_between", after=after, ceiling=end["ceiling"], limit=limit, **filter.fitting
        )
        last = rows[-1]["id"] if len(rows) == limit else end["ceiling"] if end["seen"] == WINDOW else None
        return Page([seen(row) for row in rows], None if last is None else [last])

    async def subscription(self, id: int, event_domain: str = "") -> SeenSubscription:
        row = await self._row("subscription", id=id) if is_id(id) else None
        if row is None or event_domain not in ("", row["event_domain"]):
            raise _no("subscription", id)
        return seen(row)

    async def sagas(self, filter: SagaFilter, limit: int, place: Place | None) -> Page:
        """Newest first."""
        before = place[0] if place else END
        if filter == SagaFilter():
            return page_of(await self._rows("sagas_before", before=before, limit=limit), limit)
        page = await self._between("saga_floor", "sagas_between", before, limit, {}, filter.fitting)
        if page.next and filter.since and await self._was_made_before(page.next[0], filter.since):
            return Page(page.items, None)
        return page

    async def _was_made_before(self, id: int, then: datetime.datetime) -> bool:
        """By so much that what has a lower id was, too: ids and times ascend almost together."""
        row = await self._row("saga_made_at", id=id)
        return row is not None and row["created_at"] < then - _OUT_OF_TURN

    async def sagas_with_correlation_id(
        self, correlation_id: str, event_domain: str, limit: int, place: Place | None
    ) -> Page:
        rows = await self._rows(
            "sagas_with_correlation_id",
            correlation_id=correlation_id,
            event_domain=event_domain,
            before=place[0] if place else END,
            limit=limit,
        )
        return page_of(rows, limit)

    async def open_sagas(self, status: SagaStatus, subscription_id: int, limit: int, place: Place | None) -> Page:
        """Of one status that is not final, the longest due first. What is due anew meanwhile may come again."""
        since, after = (moment(place[0]), place[1]) if place else (EVER, 0)
        arguments = {"status": status.value, "since": since, "after": after, "limit": limit}
        if subscription_id:
            rows = await self._rows("open_sagas_of_subscription", subscription_id=subscription_id, **arguments)
        else:
            rows = await self._rows("open_sagas", **arguments)
        return page_of(rows, limit, lambda row: [row["next_attempt_at"].isoformat(), row["id"]])

    async def sagas_of_event(self, event_id: int, event_domain: str, limit: int, place: Place | None) -> Page:
        if event_domain and not await self._is_of_domain(event_id, event_domain):
            return Page([], None)
        before = place[0] if place else END
        rows = await self._rows("sagas_of_event", event_id=event_id, before=before, limit=limit)
        return page_of(rows, limit)

    async def saga(self, id: int, event_domain: str = "") -> Shown:
        """One delivery, with its attempts, the last first."""
        row = await self._row("saga", id=id)
        if row is None or (event_domain and not await self._is_of_domain(row["event_id"], event_domain)):
            raise _no("saga", id)
        jobs = await self._rows("jobs_of_saga", saga_id=id, limit=SHOWN_OF_ONE)
        return {**row, "jobs": [shown_job(job) for job in jobs]}

    async def dead_letters(self, filter: LetterFilter, limit: int, place: Place | None) -> Page:
        before = place[0] if place else END
        of_one = {"subscription_id": filter.subscription_id} if filter.subscription_id else {}
        name = "dead_letters_of_subscription" if of_one else "dead_letters"
        if filter.is_plain:
            return page_of(await self._rows(f"{name}_before", before=before, limit=limit, **of_one), limit)
        floor_name = "dead_letter_of_subscription_floor" if of_one else "dead_letter_floor"
        fitting = {**of_one, **filter.fitting, "event_domain": filter.event_domain}
        return await self._between(floor_name, f"{name}_between", before, limit, of_one, fitting)

    async def route_dead_letters(self, resolved_too: bool, limit: int, place: Place | None) -> Page:
        """What could not be routed, newest first."""
        before = place[0] if place else END
        if resolved_too:
            return page_of(await self._rows("route_dead_letters_before", before=before, limit=limit), limit)
        return await self._between("route_dead_letter_floor", "unresolved_between", before, limit, {}, {})

    async def dead_letter(self, id: int, event_domain: str = "") -> Shown:
        """One dead letter, with what the event said."""
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
            return page_of(rows, limit)
        return Page(dicts(rows), [floor["floor"]] if floor["seen"] == WINDOW else None)


def _no(what: str, id: int) -> NotFound:
    """The same for what does not exist and for what is of another domain."""
    return NotFound(f"There is no {what} {id}.", f"`tidings {what.replace(' ', '-')}s list` shows those there are.")
