"""What the route admin may ask of a database and change in it."""

import datetime
from dataclasses import asdict, dataclass
from typing import Any

from tidings.db.operations import AuditedOperations
from tidings.db.session import Row
from tidings.model.route import Route, route_from


@dataclass(frozen=True)
class Place:
    """A place in the log: an id, and the identity of the last event that stands at or before it."""

    position: int
    event_id: int | None = None
    correlation_id: str | None = None
    created_at: datetime.datetime | None = None


@dataclass(frozen=True)
class Cursor:
    worker_name: str
    event_domain: str
    place: Place


@dataclass(frozen=True)
class Gate:
    name: str
    is_open: bool
    reason: str


class RouteAdminOperations(AuditedOperations):
    async def insert_route(self, route: Route) -> Route:
        """The route with its id."""
        await self._run("insert_route", **_columns(route))
        made = await self.same_route(route)
        assert made is not None
        return made

    async def same_route(self, route: Route) -> Route | None:
        """The one that has the same patterns and target."""
        key = _columns(route)
        del key["enabled"], key["dry_run"]
        return _route(await self._row("same_route", **key))

    async def lock_route(self, id: int) -> Route | None:
        return _route(await self._row("lock_route", id=id))

    async def update_route(self, route: Route) -> None:
        await self._run("update_route", id=route.id, **_columns(route))

    async def delete_route(self, id: int) -> None:
        await self._run("delete_route", id=id)

    async def lock_gate(self, name: str) -> Gate | None:
        row = await self._row("lock_gate", name=name)
        return Gate(row["name"], bool(row["is_open"]), row["reason"]) if row else None

    async def insert_gate(self, gate: Gate, actor: str) -> None:
        await self._run("insert_gate", **asdict(gate), actor=actor)

    async def update_gate(self, gate: Gate, actor: str) -> None:
        await self._run("update_gate", **asdict(gate), actor=actor)

    async def await_routers(self) -> None:
        await self._rows("await_routers")

    async def lock_cursor(self, worker_name: str) -> Cursor | None:
        return _cursor(await self._row("lock_cursor", worker_name=worker_name))

    async def lock_cursor_of_domain(self, event_domain: str) -> Cursor | None:
        return _cursor(await self._row("lock_cursor_of_domain", event_domain=event_domain))

    async def routers_like(self, worker_name: str, event_domain: str) -> list[tuple[str, str]]:
        """Name and domain of the routers that have this name or this domain."""
        rows = await self._rows("routers_like", worker_name=worker_name, event_domain=event_domain)
        return [(row["worker_name"], row["event_domain"]) for row in rows]

    async def insert_cursor(self, cursor: Cursor) -> None:
        await self._run(
            "insert_cursor",
            worker_name=cursor.worker_name,
            event_domain=cursor.event_domain,
            **asdict(cursor.place),
        )

    async def copy_holes(self, from_worker: str, to_worker: str) -> int:
        return await self._run("copy_holes", from_worker=from_worker, to_worker=to_worker)

    async def move_cursor(self, worker_name: str, place: Place) -> None:
        await self._run("move_cursor", worker_name=worker_name, **asdict(place))

    async def cut_holes(self, worker_name: str, id: int) -> None:
        """Nothing of a hole is left above this id; what lies below keeps the moment at which it was seen."""
        across = await self._rows("holes_across", worker_name=worker_name, id=id)
        await self._run("delete_holes_above", worker_name=worker_name, id=id)
        for hole in across:  # at most one: holes do not overlap
            await self._run("insert_hole", worker_name=worker_name, lo=hole["lo"], hi=id, seen_at=hole["seen_at"])

    async def place_at(self, position: int) -> Place:
        row = await self._row("event_up_to", id=position)
        return Place(position, row["id"], row["correlation_id"], row["created_at"]) if row else Place(position)

    async def last_event_number(self) -> int:
        row = await self._row("last_event_number")
        assert row is not None
        return int(row["drawn"])


def _columns(route: Route) -> dict[str, Any]:
    columns = asdict(route) | {"target": route.target.value}
    del columns["id"]
    return columns


def _route(row: Row | None) -> Route | None:
    return None if row is None else route_from(row)


def _cursor(row: Row | None) -> Cursor | None:
    if row is None:
        return None
    place = Place(
        row["position"],
        row["last_event_id"],
        row["last_event_correlation_id"],
        row["last_event_created_at"],
    )
    return Cursor(row["worker_name"], row["event_domain"], place)
