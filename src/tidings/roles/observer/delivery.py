"""What the observer can tell about deliveries: sagas with their attempts, dead letters, requeues of many.

Lists come in pages, along an index, and never carry payloads.
"""

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.errors import NotFound
from tidings.model.saga import SagaStatus
from tidings.roles.observer.pages import Page, Place

END = 2**63 - 1
_EVER = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
_SHOWN_OF_ONE = 200

Shown = Mapping[str, Any]


class DeliveryObserver(Operations):
    """Its statements are the observer's own; what it gives is what they yield, with the same types on every engine."""

    async def sagas(self, limit: int, before: int = END) -> list[Shown]:
        return _dicts(await self._rows("sagas_before", before=before, limit=limit))

    async def sagas_of_event(self, event_id: int, limit: int, before: int = END) -> list[Shown]:
        return _dicts(await self._rows("sagas_of_event", event_id=event_id, before=before, limit=limit))

    async def open_sagas(self, status: SagaStatus, subscription_id: int, limit: int, after: int = 0) -> list[Shown]:
        """Of one subscription, or of all if it is 0; the longest due first. `after` is the last one of a page."""
        since = (await self.saga(after))["next_attempt_at"] if after else _EVER
        arguments = {"status": status.value, "since": since, "after": after, "limit": limit}
        if subscription_id:
            arguments["subscription_id"] = subscription_id
            return _dicts(await self._rows("open_sagas_of_subscription", **arguments))
        return _dicts(await self._rows("open_sagas", **arguments))

    async def saga(self, id: int) -> Shown:
        """One delivery, with its attempts, the last first."""
        row = await self._row("saga", id=id)
        if row is None:
            raise NotFound(f"There is no saga {id}.", "`tidings sagas list` shows the newest ones.")
        jobs = await self._rows("jobs_of_saga", saga_id=id, limit=_SHOWN_OF_ONE)
        return {**row, "jobs": [_job(job) for job in jobs]}

    async def dead_letters(self, limit: int, before: int = END, subscription_id: int = 0) -> list[Shown]:
        """Those of one subscription, or of all if it is 0."""
        if subscription_id:
            rows = await self._rows(
                "dead_letters_of_subscription_before", subscription_id=subscription_id, before=before, limit=limit
            )
        else:
            rows = await self._rows("dead_letters_before", before=before, limit=limit)
        return _dicts(rows)

    async def dead_letter(self, id: int) -> Shown:
        """One dead letter, with what the event said."""
        row = await self._row("dead_letter", id=id)
        if row is None:
            raise NotFound(f"There is no dead letter {id}.", "`tidings dead-letters list` shows the newest ones.")
        return dict(row)

    async def mass_requeues(self, limit: int, before: int = END) -> list[Shown]:
        return _dicts(await self._rows("mass_requeues_before", before=before, limit=limit))

    async def requeue_page(self, limit: int, place: Place | None) -> Page:
        rows = await self.mass_requeues(limit, place[0] if place else END)
        return Page(rows, [rows[-1]["id"]] if len(rows) == limit else None)

    async def mass_requeue(self, id: int) -> Shown:
        """One of them, with how far it has come."""
        row = await self._row("mass_requeue", id=id)
        if row is None:
            raise NotFound(f"There is no mass requeue {id}.", "`tidings dead-letters requeues` lists them.")
        return dict(row)


def _dicts(rows: Sequence[Row]) -> list[Shown]:
    return [dict(row) for row in rows]


def _job(row: Row) -> Shown:
    """What the endpoint answered is shown as text, whatever it was."""
    excerpt = row["response_excerpt"]
    return {**row, "response_excerpt": bytes(excerpt).decode("utf-8", "replace") if excerpt else None}
