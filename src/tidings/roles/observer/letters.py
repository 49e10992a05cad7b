"""How many dead letters a filter finds, as far as is counted; those of a requeue by name; requeues of many."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidings.db.operations import Operations
from tidings.errors import NotFound
from tidings.roles.observer.filters import LetterFilter
from tidings.roles.observer.listing import END, Page, Place, Shown, dicts, page_of
from tidings.roles.observer.subscriptions import SeenSubscription, seen

# So many dead letters are looked at; with a type each of them costs a look at its event.
WINDOW, WINDOW_WITH_TYPE = 5_000, 2_000
COUNTED_TO = 1_000


@dataclass(frozen=True)
class Counted:
    """`by_subscription` are rows with active, verified and letters. `is_all`: no older ones were left unlooked at."""

    by_subscription: Sequence[Shown]
    is_all: bool

    @property
    def total(self) -> int:
        return sum(row["letters"] for row in self.by_subscription)

    @property
    def refused(self) -> list[Shown]:
        """Those of subscriptions to which nothing may be sent."""
        return [row for row in self.by_subscription if not (row["active"] and row["verified"])]


class LetterObserver(Operations):
    async def count(self, filter: LetterFilter) -> Counted:
        window = WINDOW_WITH_TYPE if filter.event_type else WINDOW
        of_one = {"subscription_id": filter.subscription_id} if filter.subscription_id else {}
        of = "_of_subscription" if of_one else ""
        floor = await self._row(f"dead_letter{of}_floor", before=END, window=window, **of_one)
        if floor is None or floor["floor"] is None:
            return Counted([], is_all=True)
        rows = await self._rows(f"count_letters{of}_between", floor=floor["floor"], **of_one, **filter.fitting)
        return Counted(dicts(rows), is_all=floor["seen"] < window)

    async def around(self, letters: Sequence[Shown]) -> tuple[dict[int, str], dict[int, SeenSubscription]]:
        """Of the events of these letters their types, and their subscriptions."""
        if not letters:
            return {}, {}
        events = await self._rows("types_among", ids=sorted({one["event_id"] for one in letters}))
        ids = sorted({one["subscription_id"] for one in letters})
        subscriptions = await self._rows("subscriptions_among", ids=ids)
        return {row["id"]: row["event_type"] for row in events}, {row["id"]: seen(row) for row in subscriptions}

    async def among(self, ids: Sequence[int]) -> list[Shown]:
        return dicts(await self._rows("letters_among", ids=list(ids))) if ids else []

    async def mass_requeues(self, limit: int, place: Place | None) -> Page:
        """Newest first."""
        before = place[0] if place else END
        return page_of(await self._rows("mass_requeues_before", before=before, limit=limit), limit)

    async def mass_requeue(self, id: int) -> Shown:
        """One of them, with how far it has come."""
        row = await self._row("mass_requeue", id=id)
        if row is None:
            raise NotFound(f"There is no mass requeue {id}.", "`tidings dead-letters requeues` lists them.")
        return dict(row)
