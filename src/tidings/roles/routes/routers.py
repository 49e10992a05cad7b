"""Gives routers their commands: a new one, go on from another place, trust the log again. Each locks the cursor."""

from collections.abc import Awaitable, Callable

from tidings.db.engine import Engine
from tidings.errors import DuplicateRow, InputRefused, NotFound, RouterHeld
from tidings.model.id import BIGGEST_ID
from tidings.model.route import EVERY_DOMAIN
from tidings.roles.routes.input import check_actor, check_reason, check_router_domain, check_worker_name
from tidings.roles.routes.operations import Cursor, Place, RouteAdminOperations


async def add(engine: Engine, worker_name: str, event_domain: str, actor: str) -> Cursor:
    """A router for one domain, which it takes over where the router of every domain stands, with the same holes."""
    check_actor(actor)
    check_worker_name(worker_name)
    check_router_domain(event_domain)

    async def work(operations: RouteAdminOperations) -> Cursor:
        source = await operations.lock_cursor_of_domain(EVERY_DOMAIN)
        made = Cursor(worker_name, event_domain, source.place if source else Place(0))
        await operations.insert_cursor(made)
        holes = await operations.copy_holes(source.worker_name, worker_name) if source else 0
        detail = {
            "event_domain": event_domain,
            "position": made.place.position,
            "holes": holes,
            "taken_over_from": source.worker_name if source else None,
        }
        await operations.audit(actor, "router.added", f"router:{worker_name}", detail)
        return made

    try:
        return await RouteAdminOperations.step(engine, work)
    except DuplicateRow as error:
        raise await _taken(engine, worker_name, event_domain) from error


async def skip(engine: Engine, worker_name: str, to: int, reason: str, actor: str) -> Cursor:
    """Moves a router forward: what lies between is never routed, unless it is rewound. Its holes stay open."""
    check_reason(reason, needed=True)

    async def place(operations: RouteAdminOperations, cursor: Cursor) -> Place:
        highest = (await operations.place_at(BIGGEST_ID)).event_id or 0
        if not cursor.place.position < to <= highest:
            raise InputRefused(
                f"The router {worker_name} is at {cursor.place.position} and the highest event is {highest}:"
                f" it can't skip to {to}.",
                "Skip forward, at most to the highest event; `tidings routers rewind` goes back.",
                field="to",
            )
        return await operations.place_at(to)

    return await _move(engine, worker_name, "router.skipped", place, reason, actor)


async def rewind(engine: Engine, worker_name: str, to: int, reason: str, actor: str) -> Cursor:
    """Moves a router back: it reads what comes after `to` again. What it has routed is not routed twice."""
    check_reason(reason)

    async def place(operations: RouteAdminOperations, cursor: Cursor) -> Place:
        if not 0 <= to < cursor.place.position:
            raise InputRefused(
                f"The router {worker_name} is at {cursor.place.position}: it can't be rewound to {to}.",
                "Give a place before that one, 0 for the very beginning; `tidings routers skip` goes forward.",
                field="to",
            )
        await operations.cut_holes(worker_name, to)
        return await operations.place_at(to)

    return await _move(engine, worker_name, "router.rewound", place, reason, actor)


async def confirm(engine: Engine, worker_name: str, reason: str, actor: str) -> Cursor:
    """Tells a router that holds to go on where it is, with the log as it is now."""
    check_reason(reason)

    async def place(operations: RouteAdminOperations, cursor: Cursor) -> Place:
        position = cursor.place.position
        drawn = await operations.last_event_number()
        # The last event that was routed may be lost, and lie beyond the place to which the cursor has gone back.
        highest = max(position, cursor.place.event_id or 0)
        if drawn < highest:
            raise _counter_is_behind(worker_name, highest, drawn)
        return await operations.place_at(position)

    return await _move(engine, worker_name, "router.confirmed", place, reason, actor)


async def _move(
    engine: Engine,
    worker_name: str,
    action: str,
    place: Callable[[RouteAdminOperations, Cursor], Awaitable[Place]],
    reason: str,
    actor: str,
) -> Cursor:
    check_actor(actor)

    async def work(operations: RouteAdminOperations) -> Cursor:
        before = await operations.lock_cursor(worker_name)
        if before is None:
            raise NotFound(
                f"There is no router named {worker_name!r}.", "`tidings routers list` shows those there are."
            )
        after = await place(operations, before)
        await operations.move_cursor(worker_name, after)
        detail = {"from": _told(before.place), "to": _told(after), "reason": reason}
        await operations.audit(actor, action, f"router:{worker_name}", detail)
        return Cursor(worker_name, before.event_domain, after)

    return await RouteAdminOperations.step(engine, work)


def _told(place: Place) -> dict[str, int | str | None]:
    return {
        "position": place.position,
        "last_event_id": place.event_id,
        "last_event_correlation_id": place.correlation_id,
    }


async def _taken(engine: Engine, worker_name: str, event_domain: str) -> InputRefused:
    others = await RouteAdminOperations.step(engine, lambda o: o.routers_like(worker_name, event_domain))
    for name, domain in others:
        if name == worker_name:
            return InputRefused(
                f"There is a router named {name!r} already, for the domain {domain!r}.",
                "Choose another name.",
                field="worker_name",
            )
    owner = f" the router {others[0][0]!r}" if others else " a router"
    return InputRefused(
        f"The domain {event_domain!r} has{owner} already; each domain has one.",
        "Any number of processes may run the same router.",
        field="event_domain",
    )


def _counter_is_behind(worker_name: str, position: int, drawn: int) -> RouterHeld:
    return RouterHeld(
        f"The highest event number drawn is {drawn}, and the router {worker_name} has been at {position}: events to"
        " come would get numbers that others had; they would not be routed, or receivers would take them for those.",
        "Move the counter first, as the owner of the schema: on PostgreSQL"
        f" SELECT setval(pg_get_serial_sequence('events', 'id'), {position});"
        f" on MariaDB and MySQL ALTER TABLE events AUTO_INCREMENT = {position + 1};",
    )
