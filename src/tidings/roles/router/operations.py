"""What the router asks of the database and writes into it; every statement takes a whole batch."""

import datetime
import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.db.operations import AuditedOperations
from tidings.db.session import Row
from tidings.decisions.diagnosing import ServerSetting
from tidings.decisions.holes import InFlight, Range
from tidings.decisions.routing import Attempt, Existing, Subscriber
from tidings.model.event import LoggedEvent
from tidings.model.route import Route, route_from


@dataclass(frozen=True)
class RoutedEvent:
    """By which it can be found again, and told from another one that got its id."""

    id: int
    correlation_id: str


@dataclass(frozen=True)
class Cursor:
    """How far a router has come. `stamp` changes with everything that another instance or a person did to it."""

    worker_name: str
    event_domain: str
    position: int
    last_event_id: int | None
    last_event_correlation_id: str | None
    runs: int

    @property
    def stamp(self) -> tuple[int, int]:
        return self.runs, self.position

    @property
    def last_event(self) -> RoutedEvent | None:
        if self.last_event_id is None or self.last_event_correlation_id is None:
            return None
        return RoutedEvent(self.last_event_id, self.last_event_correlation_id)


@dataclass(frozen=True)
class Standing:
    """What must be known before anything is routed."""

    version: int
    is_same: bool


@dataclass(frozen=True)
class RouteDeadLetter:
    id: int
    event_id: int
    worker_name: str
    snapshot: str
    is_resolved: bool


class RouterOperations(AuditedOperations):
    async def lock_cursor(self, worker_name: str) -> Cursor | None:
        return _cursor(await self._row("lock_cursor", worker_name=worker_name))

    async def wait_for_cursor(self, worker_name: str) -> None:
        await self._row("wait_for_cursor", worker_name=worker_name)

    async def wait_for_cursors(self) -> None:
        await self._rows("wait_for_cursors")

    async def read_cursor(self, worker_name: str) -> Cursor | None:
        return _cursor(await self._row("read_cursor", worker_name=worker_name))

    async def has_changed(self, worker_name: str, stamp: tuple[int, int]) -> bool:
        """Whether there is an event after the position of this stamp, or the cursor has another one by now."""
        row = await self._row("glance", worker_name=worker_name, position=stamp[1])
        return row is None or bool(row["is_more"]) or (row["runs"], row["position"]) != stamp

    async def make_cursor(self, worker_name: str, event_domain: str) -> bool:
        return bool(await self._run("make_cursor", worker_name=worker_name, event_domain=event_domain))

    async def closed_gates(self, names: Sequence[str]) -> list[str]:
        """Those of them that are closed or missing."""
        found = {row["name"] for row in await self._rows("open_gates", names=list(names))}
        return [name for name in names if name not in found]

    async def standing(self, worker_name: str) -> Standing:
        row = await self._row("standing", worker_name=worker_name)
        assert row is not None
        return Standing(row["version"], bool(row["is_same"]))

    async def correlation_of(self, event_id: int) -> str | None:
        row = await self._row("correlation_of", id=event_id)
        return None if row is None else str(row["correlation_id"])

    async def remember_lost(self, worker_name: str, event: RoutedEvent) -> None:
        await self._run("remember_lost", worker_name=worker_name, id=event.id, correlation_id=event.correlation_id)

    async def last_number(self) -> int:
        row = await self._row("last_number")
        assert row is not None
        return int(row["drawn"])

    async def proof_conditions(self) -> list[ServerSetting]:
        return [ServerSetting(**row) for row in await self._rows("proof_conditions")]

    async def other_routers(self, worker_name: str) -> dict[str, str]:
        """The domain of each other router, by its name."""
        rows = await self._rows("other_routers", worker_name=worker_name)
        return {row["worker_name"]: row["event_domain"] for row in rows}

    async def routes(self) -> list[Route]:
        return [route_from(row) for row in await self._rows("routes")]

    async def subscribers(self) -> list[Subscriber]:
        return [
            Subscriber(row["id"], row["event_domain"], row["event_type"], bool(row["active"]), bool(row["verified"]))
            for row in await self._rows("subscribers")
        ]

    async def events_after(self, position: int, limit: int) -> list[LoggedEvent]:
        return _events(await self._rows("events_after", position=position, limit=limit))

    async def events_within(self, ranges: Sequence[tuple[int, int]], limit: int) -> list[LoggedEvent]:
        return _events(await self._rows("events_within", ranges=ranges, limit=limit))

    async def attempts_between(self, lo: int, hi: int) -> list[Attempt]:
        return [Attempt(**row) for row in await self._rows("attempts_between", lo=lo, hi=hi)]

    async def attempts_among(self, ids: Sequence[int]) -> list[Attempt]:
        return [Attempt(**row) for row in await self._rows("attempts_among", ids=ids)] if ids else []

    async def unresolved_among(self, ids: Collection[int]) -> set[int]:
        return {row["event_id"] for row in await self._rows("unresolved_among", ids=list(ids))} if ids else set()

    async def existing(self, ids: Collection[int], biz_types: Collection[str]) -> dict[int, Existing]:
        """What these events have come to already."""
        subscriptions: dict[int, set[int]] = {number: set() for number in ids}
        tasks: dict[int, set[str]] = {number: set() for number in ids}
        if ids:
            for row in await self._rows("sagas_among", ids=list(ids)):
                subscriptions[row["event_id"]].add(row["subscription_id"])
        if ids and biz_types:
            keys = [str(number) for number in ids]
            for row in await self._rows("tasks_among", biz_types=list(biz_types), keys=keys):
                tasks[int(row["biz_key"])].add(row["biz_type"])
        return {number: Existing(frozenset(subscriptions[number]), frozenset(tasks[number])) for number in ids}

    async def insert_attempts(self, rows: Sequence[tuple[Any, ...]]) -> None:
        await self._run("insert_attempts", attempts=rows)

    async def insert_sagas(self, rows: Sequence[tuple[int, int, str]]) -> int:
        return await self._run("insert_sagas", sagas=rows)

    async def insert_tasks(self, biz_type: str, ids: Sequence[int]) -> int:
        return await self._run("insert_tasks", biz_type=biz_type, ids=ids)

    async def whole_event(self, event_id: int) -> Row:
        row = await self._row("whole_event", id=event_id)
        assert row is not None
        return row

    async def bury(self, event_id: int, worker_name: str, key: str, snapshot: str, error: str) -> None:
        """An event that was set aside before and fails again waits again."""
        made = await self._run(
            "bury",
            event_id=event_id,
            worker_name=worker_name,
            idempotency_key=key,
            snapshot=snapshot,
            error=error,
        )
        if not made:
            await self._run("unresolve", idempotency_key=key)

    async def dead_letter(self, dead_letter_id: int) -> RouteDeadLetter | None:
        row = await self._row("dead_letter", id=dead_letter_id)
        return None if row is None else RouteDeadLetter(**{**row, "is_resolved": bool(row["is_resolved"])})

    async def resolve(self, dead_letter_id: int, resolution: str) -> None:
        await self._run("resolve", id=dead_letter_id, resolution=resolution)

    async def holes(self, worker_name: str) -> list[Range]:
        return [(row["lo"], row["hi"]) for row in await self._rows("holes", worker_name=worker_name)]

    async def change_holes(self, worker_name: str, removed: Sequence[Range], added: Sequence[Range]) -> None:
        if removed:
            await self._run("close_holes", worker_name=worker_name, los=[lo for lo, _ in removed])
        if added:
            await self._run("insert_holes", holes=[(worker_name, lo, hi) for lo, hi in added])

    async def move_cursor(
        self, worker_name: str, position: int, last_event_id: int | None, counts: Mapping[str, int], summary: object
    ) -> None:
        await self._run(
            "move_cursor",
            worker_name=worker_name,
            position=position,
            last_event_id=last_event_id,
            summary=json.dumps(summary),
            **counts,
        )

    async def settled_writers(self, limit: int) -> list[int]:
        return [row["writer"] for row in await self._rows("settled_writers", limit=limit)]

    async def present_writers(self, limit: int) -> dict[Hashable, bool]:
        """Everybody who may still bring events, and whether a restart took the name away."""
        rows = await self._rows_uncommitted("present_writers", limit=limit)
        return {row["writer"]: bool(row["is_nameless"]) for row in rows}

    async def forget_writers(self, ids: Sequence[int]) -> None:
        await self._run("forget_writers", writers=[(number,) for number in ids])

    async def clock(self) -> datetime.datetime:
        row = await self._row("clock")
        assert row is not None
        now: datetime.datetime = row["now"]
        return now

    async def past_events(
        self, created_at: datetime.datetime, event_id: int, until: datetime.datetime, limit: int
    ) -> list[tuple[LoggedEvent, datetime.datetime]]:
        """With the time of each, by which the next batch goes on."""
        rows = await self._rows("past_events", created_at=created_at, event_id=event_id, until=until, limit=limit)
        return [(LoggedEvent(*[*row.values()][:-1]), row["created_at"]) for row in rows]

    async def decided_among(self, ids: Sequence[int]) -> set[int]:
        return {row["event_id"] for row in await self._rows("decided_among", ids=ids)} if ids else set()


def in_flight(present: Mapping[Hashable, bool], settled: Iterable[Hashable]) -> InFlight:
    gone = frozenset(settled)
    writers = frozenset(writer for writer in present if writer not in gone)
    return InFlight(writers, frozenset(writer for writer in writers if present[writer]))


def _cursor(row: Row | None) -> Cursor | None:
    return None if row is None else Cursor(**row)


def _events(rows: Iterable[Row]) -> list[LoggedEvent]:
    return [LoggedEvent(*row.values()) for row in rows]
