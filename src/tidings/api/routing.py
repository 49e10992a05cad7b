"""`/v1/routes`, `/v1/gates`, `/v1/routers`, `/v1/route-dead-letters`: which events go where, and whether at all."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field

from tidings.api.context import By, Has
from tidings.api.describing import (
    Answer,
    CursorText,
    Given,
    Id,
    IfMatch,
    Limit,
    Moment,
    PageOf,
    Shown,
    about,
    refusing_a_race,
    shown,
    stored_json,
)
from tidings.api.paging import paged
from tidings.api.problems import Refused
from tidings.db.engine import Engine
from tidings.model.key import Scope
from tidings.model.route import Route as StoredRoute
from tidings.model.route import RouteTarget, route_from
from tidings.roles.observer.listing import Page, page_of
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.router.replay import replay as replay_letter
from tidings.roles.routes import gates, routes

router = APIRouter(tags=["routing"])
ROLE = "route_admin"

GateName = Annotated[str, Path(max_length=100, description="`routing`, or `router:NAME`.", examples=["routing"])]
RouterName = Annotated[
    str, Path(max_length=60, pattern=r"^[a-z0-9_-]+$", description="A router's name.", examples=["default"])
]


class NewRoute(Given):
    """A route to be made: the most specific one wins, for webhooks and for each type of task."""

    event_type: str = Field(description="An event type, or a pattern.", examples=["order.*"])
    event_domain: str = Field("*", description="A domain, or a pattern.", examples=["*"])
    event_stream: str = Field(
        "*", description="A stream, or a pattern; empty is exactly the empty one.", examples=["*"]
    )
    target: RouteTarget = Field(RouteTarget.WEBHOOK, description="webhook or task.")
    task_biz_type: str = Field("", description="For tasks: their type.", examples=["EMAIL_SEND"])
    enabled: bool = Field(True, strict=True, description="False: that it is off is recorded, nothing is made.")
    dry_run: bool = Field(False, strict=True, description="True: decisions are recorded, nothing is made.")


class RouteChanges(Given):
    """Only what is given is changed."""

    event_type: str | None = Field(None, description="An event type, or a pattern.")
    event_domain: str | None = Field(None, description="A domain, or a pattern.")
    event_stream: str | None = Field(None, description="A stream, or a pattern.")
    target: RouteTarget | None = Field(None, description="webhook or task.")
    task_biz_type: str | None = Field(None, description="For tasks: their type.")
    enabled: bool | None = Field(None, strict=True, description="Whether it makes anything.")
    dry_run: bool | None = Field(None, strict=True, description="Whether it only records what it would do.")


class Route(Shown):
    """Where matching events go."""

    id: int = Field(description="Its id.", examples=[1])
    event_domain: str = Field(description="A domain, or a pattern.")
    event_type: str = Field(description="An event type, or a pattern.")
    event_stream: str = Field(description="A stream, or a pattern.")
    target: RouteTarget = Field(description="webhook or task.")
    task_biz_type: str = Field(description="For tasks: their type.")
    enabled: bool = Field(description="Whether it makes anything.")
    dry_run: bool = Field(description="Whether it only records what it would do.")
    version: str = Field(description="Another one after each change; the ETag.", examples=["9f86d081884c7d65"])


class GateChange(Given):
    """How a gate shall be."""

    is_open: bool = Field(strict=True, description="A router works only while `routing` and its own gate are open.")
    reason: str = Field("", max_length=500, description="Why; it is kept with the audit log.", examples=["maintenance"])


class Gate(Shown):
    """Whether anything is routed, and by which router. One that was never made is closed."""

    name: str = Field(description="`routing`, or `router:NAME`.", examples=["routing"])
    is_open: bool = Field(description="Whether it is open.")
    reason: str = Field(description="Why.")
    changed_by: str = Field(description="By whom.")
    changed_at: Moment | None = Field(description="When; null if it was never made.")


class Gates(Shown):
    """All gates."""

    items: list[Gate] = Field(description="`routing` first.")
    next_cursor: None = Field(None, description="There is only one page.")


class Router(Shown):
    """Where a router is in the log."""

    worker_name: str = Field(description="Its name.", examples=["default"])
    event_domain: str = Field(description="Its domain; `*` is every domain that no other has.")
    position: int = Field(description="Up to which event it has read.")
    lag: int = Field(description="How many ids it is behind; never less than what waits.")
    hole_ranges: int = Field(description="Ranges of ids that may still become events.")
    hole_ids: int = Field(description="How many ids these are.")
    oldest_hole_seconds: float | None = Field(description="For how long the oldest is open.")
    knows_its_last_event: bool = Field(description="False: the log is not the one it knew, and it holds.")
    runs: int = Field(description="How many passes it made.")
    sent_count: int = Field(description="Decisions: sent.")
    dry_run_count: int = Field(description="Decisions: dry run.")
    disabled_count: int = Field(description="Decisions: route disabled.")
    skipped_count: int = Field(description="Decisions: nothing matched.")
    failed_count: int = Field(description="Events it could not route.")
    updated_at: Moment = Field(description="When it last moved.")


class Hole(Shown):
    """Ids that were drawn and are not visible: their transactions may still commit."""

    lo: int = Field(description="The first.")
    hi: int = Field(description="The last.")
    seen_at: Moment = Field(description="Since when.")


class RouterWithHoles(Router):
    """A router with its holes."""

    holes: list[Hole] = Field(description="The lowest 200.")


class RouteDeadLetter(Shown):
    """An event that could not be routed."""

    id: int = Field(description="Its id.", examples=[2])
    event_id: int = Field(description="Which event.")
    worker_name: str = Field(description="Which router.")
    error: str = Field(description="Why, in the words of the database; in lists the first 200 signs.")
    created_at: Moment = Field(description="When it was set aside.")
    resolved_at: Moment | None = Field(description="When a replay succeeded.")
    resolution: str | None = Field(description="How it ended.")


class RouteDeadLetterWithEvent(RouteDeadLetter):
    """A routing dead letter with the event as it was."""

    event_snapshot: Any = Field(description="The whole event.")


class RouteReplay(Shown):
    """What a replay came to."""

    dead_letter_id: int = Field(description="Which one.")
    event_id: int = Field(description="Of which event.")
    statuses: list[str] = Field(description="The decisions.")
    is_resolved: bool = Field(description="Whether it is done with.")
    was_resolved: bool = Field(description="It had been before; nothing was done now.")


@router.get("/routes", summary="List routes", **about(Scope.VIEWER, PageOf[Route], "bad_cursor", of_all_domains=True))
async def list_routes(api: Has, limit: Limit = 50, cursor: CursorText = None) -> Answer:
    """In the order in which they were made."""
    return Answer(
        await paged(
            api,
            "routes",
            {},
            cursor,
            RoutingObserver,
            lambda observer, place: observer.routes(limit, place),
            lambda row: _told(route_from(row)),
        )
    )


@router.get("/routes/{id}", summary="One route", **about(Scope.VIEWER, Route, "not_found", of_all_domains=True))
async def show_route(id: Id, api: Has) -> Answer:
    """Its `version` is also the ETag, for `If-Match`."""
    found = await api.observed(RoutingObserver, lambda observer: observer.route(id))
    return _answer(route_from(found))


@router.post(
    "/routes", summary="Add a route", **about(Scope.ADMIN, Route, "outcome_unknown", status=201, of_all_domains=True)
)
async def add_route(given: NewRoute, api: Has, caller: By) -> Answer:
    """One with the same patterns and target is refused: neither would be the more specific one."""
    route = StoredRoute(id=0, **given.model_dump())
    made = await api.as_role(ROLE, lambda engine: routes.add(engine, route, caller.actor))
    return _answer(made, status=201)


@router.patch(
    "/routes/{id}",
    summary="Change a route",
    **about(Scope.ADMIN, Route, "not_found", "precondition_failed", of_all_domains=True),
)
async def change_route(
    id: Id,
    given: RouteChanges,
    api: Has,
    caller: By,
    if_match: IfMatch = None,
) -> Answer:
    """Only what is given."""
    changes = {name: value for name, value in given.model_dump(exclude_unset=True).items() if value is not None}
    if not changes:
        raise Refused("invalid", "There is nothing to change.")
    expected = None if if_match is None or if_match.strip() == "*" else if_match.strip().strip('"')

    async def work(engine: Engine) -> StoredRoute:
        return await routes.edit(engine, id, caller.actor, expected_version=expected, **changes)

    with refusing_a_race():
        return _answer(await api.as_role(ROLE, work))


@router.delete("/routes/{id}", summary="Remove a route", **about(Scope.ADMIN, Route, "not_found", of_all_domains=True))
async def remove_route(id: Id, api: Has, caller: By) -> Answer:
    """Answers with what it was."""
    return Answer(_told(await api.as_role(ROLE, lambda engine: routes.remove(engine, id, caller.actor))))


@router.get("/gates", summary="List gates", **about(Scope.VIEWER, Gates, of_all_domains=True))
async def list_gates(api: Has) -> Answer:
    """Those that decide something; one that was never made is closed."""
    found = await api.observed(RoutingObserver, RoutingObserver.gates)
    return Answer({"items": [shown(Gate, gate) for gate in found], "next_cursor": None})


@router.get("/gates/{name}", summary="One gate", **about(Scope.VIEWER, Gate, "not_found", of_all_domains=True))
async def show_gate(name: GateName, api: Has) -> Answer:
    """As it is now."""
    found = await api.observed(RoutingObserver, RoutingObserver.gates)
    gate = next((one for one in found if one["name"] == name), None)
    if gate is None:
        raise Refused("not_found", f"There is no gate {name!r}.")
    return Answer(shown(Gate, gate))


@router.put(
    "/gates/{name}", summary="Open or close a gate", **about(Scope.OPERATOR, Gate, "not_found", of_all_domains=True)
)
async def set_gate(name: GateName, given: GateChange, api: Has, caller: By) -> Answer:
    """When a closing is answered, no router goes on that had not noticed it."""
    act = gates.open if given.is_open else gates.close
    await api.as_role(ROLE, lambda engine: act(engine, name, given.reason, caller.actor), wakes="router")
    return await show_gate(name, api)


@router.get(
    "/routers", summary="List routers", **about(Scope.VIEWER, PageOf[Router], "bad_cursor", of_all_domains=True)
)
async def list_routers(api: Has, limit: Limit = 50, cursor: CursorText = None) -> Answer:
    """By name."""

    async def read(observer: RoutingObserver, place: Any) -> Page:
        rows = await observer.routers(limit, place[0] if place else "")
        return page_of(rows, limit, lambda row: [row["worker_name"]])

    return Answer(await paged(api, "routers", {}, cursor, RoutingObserver, read, lambda row: shown(Router, row)))


@router.get(
    "/routers/{name}", summary="One router", **about(Scope.VIEWER, RouterWithHoles, "not_found", of_all_domains=True)
)
async def show_router(name: RouterName, api: Has) -> Answer:
    """With the holes it watches."""
    found = await api.observed(RoutingObserver, lambda observer: observer.router(name))
    return Answer(shown(RouterWithHoles, found))


@router.get(
    "/route-dead-letters",
    summary="List events that could not be routed",
    **about(Scope.VIEWER, PageOf[RouteDeadLetter], "bad_cursor", of_all_domains=True),
)
async def list_route_dead_letters(
    api: Has,
    resolved_too: Annotated[bool, Query(description="Also those that a replay has resolved.")] = False,
    limit: Limit = 50,
    cursor: CursorText = None,
) -> Answer:
    """Newest first."""
    return Answer(
        await paged(
            api,
            "route-dead-letters",
            {"resolved_too": resolved_too},
            cursor,
            PageObserver,
            lambda observer, place: observer.route_dead_letters(resolved_too, limit, place),
            lambda row: shown(RouteDeadLetter, row),
        )
    )


@router.get(
    "/route-dead-letters/{id}",
    summary="One event that could not be routed",
    **about(Scope.VIEWER, RouteDeadLetterWithEvent, "not_found", of_all_domains=True),
)
async def show_route_dead_letter(id: Id, api: Has) -> Answer:
    """With the event as it was."""
    found = await api.observed(RoutingObserver, lambda observer: observer.route_dead_letter(id))
    return Answer(shown(RouteDeadLetterWithEvent, found, event_snapshot=stored_json(found["event_snapshot"])))


@router.post(
    "/route-dead-letters/{id}/replay",
    summary="Route it again",
    **about(Scope.OPERATOR, RouteReplay, "not_found", "gate_closed", of_all_domains=True),
)
async def replay(id: Id, api: Has, caller: By) -> Answer:
    """From the snapshot, as the next attempt, if the gates are open."""
    done = await api.as_role(
        "event_router", lambda engine: replay_letter(engine, id, caller.actor), wakes="orchestrator"
    )
    return Answer(shown(RouteReplay, vars(done)))


def _told(route: StoredRoute) -> dict[str, Any]:
    return shown(Route, vars(route), version=route.version)


def _answer(route: StoredRoute, status: int = 200) -> Answer:
    return Answer(_told(route), status_code=status, headers={"ETag": f'"{route.version}"'})
