"""The audit log, as those who look for something read it: by who, what, to which thing, when."""

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidings.roles.observer.listing import END, EVER, NEVER, Page, Place, Shown, moment, page_of
from tidings.roles.observer.looking import LookingObserver

_KEY = "key:"


@dataclass(frozen=True)
class AuditFilter:
    """'' and None stand for any. A `subject` that ends with a colon is a kind of thing, such as `route:`."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    @property
    def kind(self) -> str:
        return self.subject if self.subject.endswith(":") else ""


class AuditObserver(LookingObserver):
    async def audits(self, filter: AuditFilter, limit: int, place: Place | None = None) -> Page:
        """The last first, with the names of the keys that acted."""
        page = await (
            self._of_one(filter, limit, place)
            if filter.subject and not filter.kind
            else self._any(filter, limit, place)
        )
        names = await self._key_names(row["actor"] for row in page.items)
        return Page([_read(row, names) for row in page.items], page.next)

    async def _any(self, filter: AuditFilter, limit: int, place: Place | None) -> Page:
        until, before = (moment(place[0]), place[1]) if place else (filter.until or NEVER, END)
        return await self._looked(
            "audits_between",
            lambda row: [row["created_at"].isoformat(), row["id"]],
            limit,
            bool(filter.actor or filter.action or filter.kind),
            since=filter.since or EVER,
            until=until,
            before=before,
            actor=filter.actor,
            action=filter.action,
            kind=filter.kind,
            kind_length=len(filter.kind),
        )

    async def _of_one(self, filter: AuditFilter, limit: int, place: Place | None) -> Page:
        rows = await self._rows(
            "audits_of_before",
            subject=filter.subject,
            actor=filter.actor,
            action=filter.action,
            since=filter.since or EVER,
            until=filter.until or NEVER,
            before=place[0] if place else END,
            limit=limit,
        )
        return page_of(rows, limit)

    async def _key_names(self, actors: Iterable[str]) -> dict[str, str]:
        ids = sorted({actor.removeprefix(_KEY) for actor in actors if actor.startswith(_KEY)})
        rows = await self._rows("key_names", public_ids=ids) if ids else ()
        return {f"{_KEY}{row['public_id']}": row["name"] for row in rows}


def _read(row: Shown, names: Mapping[str, str]) -> Shown:
    return {**row, "detail": json.loads(row["detail"] or "null"), "actor_name": names.get(row["actor"], "")}
