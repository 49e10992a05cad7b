"""Tasks by type, status, business key and time: those of the queue, those of the history, and how many of each kind."""

import datetime
from dataclasses import dataclass

from tidings.db.session import Row
from tidings.model.task import TaskStatus
from tidings.roles.observer.listing import END, EVER, NEVER, Page, Place, dicts, moment, page_of
from tidings.roles.observer.looking import LookingObserver

COUNTED_TO = 250
MOST_KINDS = 20
_WAITING = (TaskStatus.PENDING, TaskStatus.FAIL_RETRY)


@dataclass(frozen=True)
class TaskFilter:
    """'' and None stand for any; a business key needs a type, and times are of the history."""

    biz_type: str = ""
    biz_key: str = ""
    status: TaskStatus | None = None
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None


@dataclass(frozen=True)
class TaskKind:
    """How many of one type wait, of those how many are due, run, and failed for good; each counted to COUNTED_TO."""

    biz_type: str
    waiting: int = 0
    due: int = 0
    running: int = 0
    failed: int = 0


class TaskPages(LookingObserver):
    async def queue(self, filter: TaskFilter, limit: int, place: Place | None) -> Page:
        """Of no status the newest first, of one type by key; what waits in its order, what has ended newest first."""
        kind, status = filter.biz_type, filter.status
        if filter.biz_key:
            return Page(dicts(await self._rows("task_of_key", biz_type=kind, biz_key=filter.biz_key)), None)
        if status is None:
            return await (self._of_type(kind, limit, place) if kind else self._newest(limit, place))
        if status not in _WAITING:
            return await self._lately(status, kind, limit, place)
        if kind:
            return await self._waiting_of_type(status, kind, limit, place)
        return await self._waiting(status, limit, place)

    async def history(self, filter: TaskFilter, limit: int, place: Place | None) -> Page:
        """The last first; of one type and nothing else by business key."""
        kind, status = filter.biz_type, filter.status
        if filter.biz_key:
            return await self._archived_of_key(kind, filter.biz_key, limit, place)
        if kind and status is None and filter.since is None and filter.until is None:
            return await self._archived_of_type(kind, limit, place)
        until, before = (moment(place[0]), place[1]) if place else (filter.until or NEVER, END)
        return await self._looked(
            "archived_between",
            lambda row: [row["archived_at"].isoformat(), row["id"]],
            limit,
            bool(kind) or status is not None,
            since=filter.since or EVER,
            until=until,
            before=before,
            biz_type=kind,
            status=-1 if status is None else status.value,
        )

    async def kinds(self) -> list[TaskKind]:
        """The first types of which something waits, and those of which something runs or failed lately."""
        found: dict[str, dict[str, int]] = {}
        after = ""
        while len(found) < MOST_KINDS and (row := await self._row("task_depth", after=after, most=COUNTED_TO)):
            after = row["biz_type"]
            found[after] = {"waiting": int(row["waiting"]), "due": int(row["due"] or 0)}
        for row in await self._rows("kinds_lately", most=COUNTED_TO):
            name = "running" if row["status"] == TaskStatus.PROCESSING else "failed"
            found.setdefault(row["biz_type"], {})[name] = int(row["tasks"])
        return [TaskKind(kind, **counts) for kind, counts in sorted(found.items())]

    async def _newest(self, limit: int, place: Place | None) -> Page:
        rows = await self._rows("tasks_before", before=place[0] if place else END, limit=limit)
        return page_of(rows, limit)

    async def _of_type(self, kind: str, limit: int, place: Place | None) -> Page:
        rows = await self._rows("tasks_of_type", biz_type=kind, after_key=place[0] if place else "", limit=limit)
        return page_of(rows, limit, lambda row: [row["biz_key"]])

    async def _lately(self, status: TaskStatus, kind: str, limit: int, place: Place | None) -> Page:
        until, before = (moment(place[0]), place[1]) if place else (NEVER, END)
        return await self._looked(
            "tasks_lately",
            lambda row: [row["updated_at"].isoformat(), row["id"]],
            limit,
            bool(kind),
            status=status.value,
            biz_type=kind,
            until=until,
            before=before,
        )

    async def _waiting(self, status: TaskStatus, limit: int, place: Place | None) -> Page:
        since, priority, after = (moment(place[0]), place[1], place[2]) if place else (EVER, 0, 0)
        rows = await self._rows(
            "tasks_of_status", status=status.value, since=since, priority=priority, after=after, limit=limit
        )
        return page_of(rows, limit, lambda row: [row["next_run_time"].isoformat(), row["priority"], row["id"]])

    async def _waiting_of_type(self, status: TaskStatus, kind: str, limit: int, place: Place | None) -> Page:
        priority, since, after = (place[0], moment(place[1]), place[2]) if place else (-1, EVER, 0)

        def place_of(row: Row) -> Place:
            return [row["priority"], row["next_run_time"].isoformat(), row["id"]]

        return await self._looked(
            "waiting_of_type",
            place_of,
            limit,
            True,
            status=status.value,
            biz_type=kind,
            priority=priority,
            since=since,
            after=after,
        )

    async def _archived_of_key(self, kind: str, key: str, limit: int, place: Place | None) -> Page:
        after = place[0] if place else 0
        rows = await self._rows("archived_tasks_of_key", biz_type=kind, biz_key=key, after=after, limit=limit)
        return page_of(rows, limit)

    async def _archived_of_type(self, kind: str, limit: int, place: Place | None) -> Page:
        key, after = (place[0], place[1]) if place else ("", 0)
        rows = await self._rows("archived_tasks_of_type", biz_type=kind, after_key=key, after=after, limit=limit)
        return page_of(rows, limit, lambda row: [row["biz_key"], row["id"]])
