"""What the observer can tell about routing: routes, gates, routers, and what was decided about an event."""

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.decisions.explaining import explain_writers
from tidings.errors import NotFound
from tidings.model.explanation import Reason
from tidings.model.route import DEFAULT_ROUTER, ROUTING_GATE, router_gate
from tidings.roles.observer.listing import MOST_ROUTERS, SHOWN_OF_ONE, Page, Place, Shown, dicts, page_of


class RoutingObserver(Operations):
    """What it gives is what its statements yield, with the same types on every engine."""

    async def routes(self, limit: int, place: Place | None) -> Page:
        """In the order in which they were made."""
        rows = await self._rows("routes_after", after=place[0] if place else 0, limit=limit)
        return page_of([_with_flags(row, "enabled", "dry_run") for row in rows], limit)

    async def route(self, id: int) -> Shown:
        row = await self._row("route", id=id)
        if row is None:
            raise NotFound(f"There is no route {id}.", "`tidings routes list` shows those there are.")
        return _with_flags(row, "enabled", "dry_run")

    async def gates(self) -> list[Shown]:
        """Every gate that decides something; one that is missing is closed, and is shown as such."""
        rows = await self._rows("gates_after", after="", limit=MOST_ROUTERS)
        stored = {row["name"]: _with_flags(row, "is_open") for row in rows}
        routers = await self.routers(MOST_ROUTERS)
        workers = [router["worker_name"] for router in routers] or [DEFAULT_ROUTER]
        wanted = dict.fromkeys([ROUTING_GATE, *map(router_gate, workers), *stored])
        return [stored.get(name, _missing_gate(name)) for name in wanted]

    async def routers(self, limit: int, after: str = "") -> list[Shown]:
        return [_router(row) for row in await self._rows("routers_after", after=after, limit=limit, only="")]

    async def router(self, worker_name: str) -> Shown:
        """One router with its holes, the lowest first."""
        row = await self._row("routers_after", after="", limit=1, only=worker_name)
        if row is None:
            raise NotFound(
                f"There is no router named {worker_name!r}.", "`tidings routers list` shows those there are."
            )
        holes = await self._rows("router_holes", worker_name=worker_name, limit=SHOWN_OF_ONE)
        return {**_router(row), "holes": dicts(holes)}

    async def newest_event(self) -> int:
        """The highest id that is visible; 0 in an empty log."""
        row = await self._row("newest_event")
        return row["id"] or 0 if row else 0

    async def open_writers(self) -> list[tuple[int | None, float | None]]:
        """The process and the age in seconds of each transaction that may still bring events, where it is shown."""
        return [(row["pid"], row["open_seconds"]) for row in await self._rows("open_writers")]

    async def who_holds_holes(self) -> tuple[Reason, ...]:
        """The sessions whose transactions may still bring events, in the words of `why`."""
        return explain_writers(await self._rows("open_writers"))

    async def route_dead_letter(self, id: int) -> Shown:
        """One routing dead letter, with the event as it was."""
        row = await self._row("route_dead_letter", id=id)
        if row is None:
            raise NotFound(
                f"There is no routing dead letter {id}.",
                "`tidings route-dead-letters list --all` shows those there are.",
            )
        return dict(row)

    async def unresolved_route_dead_letters(self, among: int) -> tuple[int, Shown | None]:
        """How many of the newest `among` are unresolved, and the newest of those."""
        row = await self._row("unresolved_among_newest", among=among)
        if row is None or row["newest"] is None:
            return 0, None
        return row["unresolved"], await self.route_dead_letter(row["newest"])

    async def event(self, id: int) -> Shown:
        """One event, with its payload and what routers decided about it."""
        row = await self._row("event", id=id)
        if row is None:
            raise NotFound(f"There is no event {id}.", "`tidings events list` shows the newest ones.")
        attempts = await self._rows("attempts_of_event", event_id=id, limit=SHOWN_OF_ONE)
        return {**row, "route_attempts": dicts(attempts)}


def _with_flags(row: Row, *flags: str) -> Shown:
    return {**row, **{flag: bool(row[flag]) for flag in flags}}


def _missing_gate(name: str) -> Shown:
    return {"name": name, "is_open": False, "reason": "", "changed_by": "", "changed_at": None}


def _router(row: Row) -> Shown:
    """`lag` is an upper bound: it counts the ids after the position, of every domain, used or not."""
    shown = _with_flags(row, "knows_its_last_event")
    now, oldest = row["now"], row["oldest_hole"]
    return {
        **{name: value for name, value in shown.items() if name != "now"},
        "lag": max(0, (row["newest_event_id"] or 0) - row["position"]),
        "hole_ranges": row["hole_ranges"] or 0,
        "hole_ids": int(row["hole_ids"] or 0),
        "oldest_hole_seconds": (now - oldest).total_seconds() if oldest else None,
    }
