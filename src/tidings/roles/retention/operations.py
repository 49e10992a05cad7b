"""What retention asks of the database and removes from it; every statement takes a whole batch."""

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tidings.db.operations import Operations
from tidings.decisions.expiring import Attempts, Jobs, Letters, OldEvent, RouterPlace, Saga
from tidings.model.retention import COUNTED
from tidings.model.route import RouteAttemptStatus
from tidings.model.saga import SagaStatus

# One event may have more sagas than fit in one statement.
_IDS_AT_ONCE = 5_000
_EVER = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Place:
    """How far a walk has come: this one was the last that it looked at."""

    time: datetime.datetime
    id: int


@dataclass(frozen=True)
class Walk:
    """`cutoff` is the end of what is old by now; `is_long_ago` tells that it was begun a round ago."""

    place: Place
    cutoff: datetime.datetime
    is_long_ago: bool


@dataclass(frozen=True)
class OldTask:
    id: int
    biz_key: str
    place: Place

    @property
    def day(self) -> str:
        return _day(self.place.time)


class RetentionOperations(Operations):
    async def make_walk(self, name: str) -> None:
        await self._run("make_walk", name=name)

    async def take_walk(self, name: str, keep: float, round: float) -> Walk | None:
        """None while another instance walks."""
        row = await self._row("take_walk", name=name, keep=keep, round=round)
        if row is None:
            return None
        return Walk(Place(row["at_time"] or _EVER, row["at_id"]), row["cutoff"], bool(row["is_long_ago"]))

    async def move_walk(self, name: str, place: Place) -> None:
        await self._run("move_walk", name=name, at_time=place.time, at_id=place.id)

    async def begin_walk(self, name: str) -> None:
        await self._run("begin_walk", name=name)

    async def old_events(self, walk: Walk, limit: int) -> list[tuple[OldEvent, Place]]:
        rows = await self._rows(
            "old_events", at_time=walk.place.time, at_id=walk.place.id, cutoff=walk.cutoff, limit=limit
        )
        return [
            (
                OldEvent(row["id"], row["event_domain"], _day(row["created_at"])),
                Place(row["created_at"], row["id"]),
            )
            for row in rows
        ]

    async def hold_cursors(self) -> dict[str, RouterPlace]:
        return {
            row["worker_name"]: RouterPlace(row["event_domain"], row["position"], row["last_event_id"])
            for row in await self._rows("hold_cursors")
        }

    async def holes_between(self, names: Collection[str], ids: Collection[int]) -> list[tuple[int, int]]:
        rows = await self._rows("holes_between", names=[*names], lowest=min(ids), highest=max(ids))
        return [(row["lo"], row["hi"]) for row in rows]

    async def attempts_of(self, ids: Sequence[int], cutoff: datetime.datetime) -> dict[int, list[Attempts]]:
        found: dict[int, list[Attempts]] = defaultdict(list)
        for row in await self._rows("attempts_of", ids=ids, cutoff=cutoff):
            kind, status = row["route_kind"], RouteAttemptStatus(row["status"])
            counted = (int(row["attempts"]), int(row["matched"]))
            found[row["event_id"]].append(Attempts(kind, status, *counted, bool(row["is_recent"])))
        return dict(found)

    async def saga_counts(self, ids: Sequence[int]) -> dict[int, int]:
        return {row["event_id"]: row["sagas"] for row in await self._rows("saga_counts", ids=ids)}

    async def sagas_of(self, ids: Sequence[int], cutoff: datetime.datetime) -> dict[int, list[Saga]]:
        found: dict[int, list[Saga]] = defaultdict(list)
        for row in await self._rows("sagas_of", ids=ids, cutoff=cutoff):
            whose = (row["id"], row["subscription_id"], row["generation"])
            found[row["event_id"]].append(Saga(*whose, SagaStatus(row["status"]), bool(row["is_recent"])))
        return dict(found)

    async def jobs_of(self, saga_ids: Sequence[int]) -> dict[int, Jobs]:
        return {
            row["saga_id"]: Jobs(row["jobs"], row["unapplied"])
            for some in _parts(saga_ids)
            for row in await self._rows("jobs_of", saga_ids=some)
        }

    async def letters_of(self, ids: Sequence[int], cutoff: datetime.datetime) -> dict[int, Letters]:
        return {
            row["event_id"]: Letters(row["letters"], row["unresolved"], bool(row["is_recent"]))
            for row in await self._rows("letters_of", ids=ids, cutoff=cutoff)
        }

    async def dead_letters_of(self, ids: Sequence[int]) -> dict[int, int]:
        return {row["event_id"]: row["letters"] for row in await self._rows("dead_letters_of", ids=ids)}

    async def with_open_tasks(self, ids: Collection[int]) -> set[int]:
        """Of these events those that have a task, of whatever type and status, that is not in the history."""
        if not ids:
            return set()
        types, after = [], ""
        while (row := await self._row("next_task_type", after=after)) and row["biz_type"] is not None:
            types.append(after := row["biz_type"])
        if not types:
            return set()
        rows = await self._rows("open_tasks", biz_types=types, keys=[str(id) for id in ids])
        return {int(row["biz_key"]) for row in rows}

    async def remove(self, event_ids: Sequence[int], saga_ids: Sequence[int]) -> None:
        """All that these stories are made of, in the only order that the guards allow."""
        for some in _parts(saga_ids):
            await self._run("remove_jobs", saga_ids=some)
        await self._run("remove_dead_letters", ids=event_ids)
        for some in _parts(saga_ids):
            await self._run("remove_sagas", saga_ids=some)
        await self._run("remove_route_dead_letters", ids=event_ids)
        await self._run("remove_events", ids=event_ids)
        await self._run("remove_attempts", ids=event_ids)

    async def add_totals(self, totals: Mapping[str, Mapping[str, int]]) -> None:
        rows = [(day, *(counts.get(name, 0) for name in COUNTED)) for day, counts in sorted(totals.items())]
        await self._run("add_totals", totals=rows)

    async def old_tasks(self, walk: Walk, limit: int) -> list[OldTask]:
        rows = await self._rows(
            "old_tasks", at_time=walk.place.time, at_id=walk.place.id, cutoff=walk.cutoff, limit=limit
        )
        return [OldTask(row["id"], row["biz_key"], Place(row["archived_at"], row["id"])) for row in rows]

    async def events_with_tasks(self, ids: Sequence[int]) -> set[int]:
        return {row["event_id"] for row in await self._rows("events_with_tasks", ids=ids)} if ids else set()

    async def remove_tasks(self, ids: Sequence[int]) -> None:
        await self._run("remove_tasks", ids=ids)


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + _IDS_AT_ONCE] for start in range(0, len(ids), _IDS_AT_ONCE))


def _day(moment: datetime.datetime) -> str:
    return f"{moment:%Y-%m-%d}"
