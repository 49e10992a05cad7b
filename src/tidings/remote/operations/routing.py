"""Which events go where, and whether at all."""

from typing import Any
from urllib.parse import quote

from tidings.remote import answers as a
from tidings.remote.calling import PAGE_SIZE, Call, get, json_of, post


def routes(*, page_size: int = PAGE_SIZE) -> Call[a.Page[a.Route]]:
    """All routes, in the order in which they were made."""
    return get("/v1/routes", a.Page[a.Route], limit=page_size)


def add_route(event_type: str, **fields: Any) -> Call[a.Route]:
    """Add a route. Other fields as the API has them: event_domain, event_stream, target, task_biz_type, …"""
    return post("/v1/routes", a.Route, {"event_type": event_type, **fields}, is_repeatable=False)


def route(id: int) -> Call[a.Route]:
    """One route."""
    return get(f"/v1/routes/{id}", a.Route)


def change_route(id: int, *, if_version: str | None = None, **fields: Any) -> Call[a.Route]:
    """Change only what is given; not at all if its `version` is not `if_version` any more."""
    headers = {} if if_version is None else {"If-Match": f'"{if_version}"'}
    return Call(
        "PATCH",
        f"/v1/routes/{id}",
        a.Route,
        body=json_of(fields),
        headers=headers,
        is_repeatable=if_version is None,
    )


def remove_route(id: int) -> Call[a.Route]:
    """Remove a route; answered is what it was."""
    return Call("DELETE", f"/v1/routes/{id}", a.Route, is_repeatable=False)


def gates() -> Call[a.Page[a.Gate]]:
    """All gates that decide something."""
    return get("/v1/gates", a.Page[a.Gate])


def gate(name: str) -> Call[a.Gate]:
    """One gate as it is now."""
    return get(f"/v1/gates/{quote(name, safe='')}", a.Gate)


def open_gate(name: str, *, reason: str = "") -> Call[a.Gate]:
    """Open `routing`, or `router:NAME`."""
    return _set_gate(name, True, reason)


def close_gate(name: str, *, reason: str = "") -> Call[a.Gate]:
    """Close it: when this is answered, no router goes on that had not noticed."""
    return _set_gate(name, False, reason)


def routers(*, page_size: int = PAGE_SIZE) -> Call[a.Page[a.Router]]:
    """All routers, by name."""
    return get("/v1/routers", a.Page[a.Router], limit=page_size)


def router(name: str) -> Call[a.RouterWithHoles]:
    """One router, with the holes it watches."""
    return get(f"/v1/routers/{quote(name, safe='')}", a.RouterWithHoles)


def route_dead_letters(*, resolved_too: bool = False, page_size: int = PAGE_SIZE) -> Call[a.Page[a.RouteDeadLetter]]:
    """All events that could not be routed, newest first."""
    return get("/v1/route-dead-letters", a.Page[a.RouteDeadLetter], resolved_too=resolved_too or None, limit=page_size)


def route_dead_letter(id: int) -> Call[a.RouteDeadLetterWithEvent]:
    """One of them, with the event as it was."""
    return get(f"/v1/route-dead-letters/{id}", a.RouteDeadLetterWithEvent)


def replay_route_dead_letter(id: int) -> Call[a.RouteReplay]:
    """Route it again, as the next attempt."""
    return post(f"/v1/route-dead-letters/{id}/replay", a.RouteReplay)


def _set_gate(name: str, is_open: bool, reason: str) -> Call[a.Gate]:
    given = {"is_open": is_open, "reason": reason}
    return Call("PUT", f"/v1/gates/{quote(name, safe='')}", a.Gate, body=json_of(given))
