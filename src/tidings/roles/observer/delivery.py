"""What the observer can tell about deliveries: sagas with their attempts, dead letters, requeues of many.

Lists come in pages, along an index, and never carry payloads.
"""

from tidings.db.operations import Operations
from tidings.errors import NotFound
from tidings.model.saga import SagaStatus
from tidings.roles.observer.listing import END, EVER, SHOWN_OF_ONE, Page, Place, Shown, dicts, page_of, shown_job


class DeliveryObserver(Operations):
    """What it gives is what its statements yield, with the same types on every engine."""

    async def sagas(self, limit: int, before: int = END) -> list[Shown]:
        return dicts(await self._rows("sagas_before", before=before, limit=limit))

    async def sagas_of_event(self, event_id: int, limit: int, before: int = END) -> list[Shown]:
        return dicts(await self._rows("sagas_of_event", event_id=event_id, before=before, limit=limit))

    async def open_sagas(self, status: SagaStatus, subscription_id: int, limit: int, after: int = 0) -> list[Shown]:
        """Of one subscription, or of all if it is 0; the longest due first. `after` is the last one of a page."""
        since = (await self.saga(after))["next_attempt_at"] if after else EVER
        arguments = {"status": status.value, "since": since, "after": after, "limit": limit}
        if subscription_id:
            arguments["subscription_id"] = subscription_id
            return dicts(await self._rows("open_sagas_of_subscription", **arguments))
        return dicts(await self._rows("open_sagas", **arguments))

    async def saga(self, id: int) -> Shown:
        """One delivery, with its attempts, the last first."""
        row = await self._row("saga", id=id)
        if row is None:
            raise NotFound(f"There is no saga {id}.", "`tidings sagas list` shows the newest ones.")
        jobs = await self._rows("jobs_of_saga", saga_id=id, limit=SHOWN_OF_ONE)
        return {**row, "jobs": [shown_job(job) for job in jobs]}

    async def dead_letters(self, limit: int, before: int = END, subscription_id: int = 0) -> list[Shown]:
        """Those of one subscription, or of all if it is 0."""
        if subscription_id:
            rows = await self._rows(
                "dead_letters_of_subscription_before", subscription_id=subscription_id, before=before, limit=limit
            )
        else:
            rows = await self._rows("dead_letters_before", before=before, limit=limit)
        return dicts(rows)

    async def dead_letter(self, id: int) -> Shown:
        """One dead letter, with what the event said."""
        row = await self._row("dead_letter", id=id)
        if row is None:
            raise NotFound(f"There is no dead letter {id}.", "`tidings dead-letters list` shows the newest ones.")
        return dict(row)

    async def mass_requeues(self, limit: int, before: int = END) -> list[Shown]:
        return dicts(await self._rows("mass_requeues_before", before=before, limit=limit))

    async def requeue_page(self, limit: int, place: Place | None) -> Page:
        return page_of(await self.mass_requeues(limit, place[0] if place else END), limit)

    async def mass_requeue(self, id: int) -> Shown:
        """One of them, with how far it has come."""
        row = await self._row("mass_requeue", id=id)
        if row is None:
            raise NotFound(f"There is no mass requeue {id}.", "`tidings dead-letters requeues` lists them.")
        return dict(row)
