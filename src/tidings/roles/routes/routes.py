"""Adds, edits and removes routes. Two that would tie are refused, also when two people write at once."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from typing import Any

from tidings.db.engine import Engine
from tidings.errors import Conflict, DuplicateRow, NotFound, RouteRefused
from tidings.model.route import Route, RouteTarget
from tidings.roles.routes.input import check_actor, check_route
from tidings.roles.routes.operations import RouteAdminOperations

CATCH_ALL = Route(id=0, event_domain="*", event_type="*", event_stream="*", target=RouteTarget.WEBHOOK)


async def add(engine: Engine, route: Route, actor: str) -> Route:
    """Stores the route, whose id is not looked at, and returns it with the id it got."""
    check_actor(actor)
    check_route(route)

    async def work(operations: RouteAdminOperations) -> Route:
        made = await operations.insert_route(route)
        await operations.audit(actor, "route.created", f"route:{made.id}", {"before": None, "after": asdict(made)})
        return made

    return await _unless_tied(engine, lambda: route, work)


async def edit(engine: Engine, id: int, actor: str, *, expected_version: object = None, **changes: Any) -> Route:
    """Changes what is named of a route; a route that stays as it is leaves no trace.

    With `expected_version` only if it is still the one with that version; otherwise Conflict.
    """
    check_actor(actor)
    after: Route

    async def work(operations: RouteAdminOperations) -> Route:
        nonlocal after
        before = _found(id, await operations.lock_route(id))
        if expected_version not in (None, before.version):
            raise Conflict(f"Route {id} was changed meanwhile.", "Look at it again.")
        after = changed(before, changes)
        check_route(after)
        if after != before:
            await operations.update_route(after)
            detail = {"before": asdict(before), "after": asdict(after)}
            await operations.audit(actor, "route.changed", f"route:{id}", detail)
        return after

    return await _unless_tied(engine, lambda: after, work)


def changed(route: Route, changes: dict[str, Any]) -> Route:
    """A route that is turned to webhooks has no task type any more, without anybody's saying so."""
    if changes.get("target") is RouteTarget.WEBHOOK:
        changes = {"task_biz_type": "", **changes}
    return replace(route, **changes)


async def remove(engine: Engine, id: int, actor: str) -> Route:
    """Removes a route and returns what it was."""
    check_actor(actor)

    async def work(operations: RouteAdminOperations) -> Route:
        before = _found(id, await operations.lock_route(id))
        await operations.delete_route(id)
        await operations.audit(actor, "route.removed", f"route:{id}", {"before": asdict(before), "after": None})
        return before

    return await RouteAdminOperations.step(engine, work)


def _found(id: int, route: Route | None) -> Route:
    if route is None:
        raise NotFound(f"There is no route {id}.", "`tidings routes list` shows those there are.")
    return route


async def _unless_tied(
    engine: Engine, written: Callable[[], Route], work: Callable[[RouteAdminOperations], Awaitable[Route]]
) -> Route:
    """The unique index is the judge; whose route is in the way is asked when it has spoken."""
    try:
        return await RouteAdminOperations.step(engine, work)
    except DuplicateRow as error:
        other = await RouteAdminOperations.step(engine, lambda operations: operations.same_route(written()))
        raise _tied(other) from error


def _tied(other: Route | None) -> RouteRefused:
    named = f"Route {other.id}" if other else "A route that is gone by now"
    return RouteRefused(
        f"{named} has the same patterns and the same target: neither would be the more specific one.",
        f"Edit route {other.id}, or choose other patterns." if other else "Try again.",
        field="event_type",
    )
