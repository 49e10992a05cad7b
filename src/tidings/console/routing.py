"""Routing: routers and gates, routes with a preview, and what could not be routed."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from starlette.responses import Response

from tidings.console.declaring import get, post
from tidings.console.fields import Fields
from tidings.console.page import ROWS, Page
from tidings.db.engine import Engine
from tidings.decisions.routing import NO_ROUTE, NO_SUBSCRIPTION, ROUTE_DISABLED
from tidings.errors import GateClosed, InputRefused, NotFound, RouterHeld
from tidings.model.explanation import Reason
from tidings.model.key import Scope
from tidings.model.route import Route, RouteTarget
from tidings.roles.observer.listing import Shown
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.preview import preview
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.router.replay import replay as replay_letter
from tidings.roles.routes import gates
from tidings.roles.routes import routers as router_commands
from tidings.roles.routes import routes as route_commands
from tidings.roles.routes.operations import Cursor

Commanding = Callable[[Engine, str, str, str], Awaitable[Cursor]]
Moving = Callable[[Engine, str, int, str, str], Awaitable[Cursor]]
ROLE = "route_admin"
MOST_PREVIEWED = 100
_MOST_ROUTERS = 200
_AMONG = 1_000
_REASONS = (NO_ROUTE, NO_SUBSCRIPTION, ROUTE_DISABLED)


async def index(page: Page) -> Response:
    async def look(observer: RoutingObserver) -> dict[str, Any]:
        unresolved, _ = await observer.unresolved_route_dead_letters(_AMONG)
        return {
            "routers": await observer.routers(_MOST_ROUTERS),
            "gates": await observer.gates(),
            "unresolved": unresolved,
        }

    return page.show("routing/index.html", **await page.read(RoutingObserver, look))


async def show_router(page: Page, errors: Mapping[str, str] | None = None) -> Response:
    """With its holes, and whose open transactions may still fill them."""
    name = _router_name(page)

    async def look(observer: RoutingObserver) -> tuple[Shown, tuple[Reason, ...]]:
        router = await observer.router(name)
        return router, await observer.who_holds_holes() if router["holes"] else ()

    router, holders = await page.read(RoutingObserver, look)
    status = 422 if errors else 200
    return page.show("routing/router.html", status, router=router, holders=holders, errors=errors or {})


def _router_name(page: Page) -> str:
    name = str(page.request.path_params["name"])
    if not name.isprintable():
        raise NotFound("There is no such router.")
    return name


async def rewind(page: Page) -> Response:
    return await _moved(page, "rewind", router_commands.rewind)


async def skip(page: Page) -> Response:
    return await _moved(page, "skip", router_commands.skip)


async def confirm(page: Page) -> Response:
    return await _commanded(page, "confirm", router_commands.confirm)


async def _moved(page: Page, command: str, act: Moving) -> Response:
    typed = Fields(page.form, page.words)
    to = typed.whole(f"{command}_to", least=0, needed=True)
    if typed.errors:
        return await show_router(page, typed.errors)
    return await _commanded(page, command, lambda engine, name, reason, who: act(engine, name, to, reason, who))


async def _commanded(page: Page, command: str, act: Commanding) -> Response:
    """The page has a form for each command, so their fields have its name before theirs."""
    name, reason = _router_name(page), page.form.text(f"{command}_reason")
    try:
        now = await page.api.as_role(ROLE, lambda engine: act(engine, name, reason, page.actor), wakes="router")
    except InputRefused as refused:
        wrong = page.errors(refused)
        return await show_router(page, {f"{command}_{field}": said for field, said in wrong.items()})
    except RouterHeld as held:
        return page.go(_router_path(name), refused=held)
    return page.go(_router_path(name), "routing.moved_to", name=name, position=now.place.position)


def _router_path(name: str) -> str:
    return f"/routing/routers/{quote(name, safe='')}"


async def set_gate(page: Page) -> Response:
    name, reason = page.form.text("name"), page.form.text("reason")
    act, done = (gates.open, "routing.opened") if page.form["to"] == "open" else (gates.close, "routing.closed")
    try:
        await page.api.as_role(ROLE, lambda engine: act(engine, name, reason, page.actor), wakes="router")
    except InputRefused as refused:
        return page.go("/routing", refused=refused)
    return page.go("/routing", done, name=name)


async def list_routes(page: Page) -> Response:
    found = await page.listed("routes", {}, RoutingObserver, lambda observer, place: observer.routes(ROWS, place))
    return page.show("routing/routes.html", **found)


async def new_route(page: Page) -> Response:
    values = {"event_type": page.query.text("event_type"), "event_domain": "*", "event_stream": "*", "enabled": True}
    return _form(page, {**values, "target": RouteTarget.WEBHOOK, "task_biz_type": "", "dry_run": False})


async def add_route(page: Page) -> Response:
    async def act(engine: Engine) -> Route:
        return await route_commands.add(engine, Route(id=0, **_given(page)), page.actor)

    return await _written(page, act, "routing.route_added")


async def show_route(page: Page) -> Response:
    route = await _route(page)
    return _form(page, route, route=route)


async def edit_route(page: Page) -> Response:
    id = page.id

    async def act(engine: Engine) -> Route:
        return await route_commands.edit(engine, id, page.actor, **_given(page))

    return await _written(page, act, "routing.route_changed", route={"id": id})


async def switch_route(page: Page) -> Response:
    """One of its two switches, from the list."""
    id, field = page.id, page.form["field"]
    if field not in ("enabled", "dry_run"):
        raise InputRefused("There is no such switch.", field="field")
    changes = {field: page.form["to"] == "on"}
    changed = await page.api.as_role(ROLE, lambda engine: route_commands.edit(engine, id, page.actor, **changes))
    state = "disabled" if not changed.enabled else "dry_run" if changed.dry_run else "live"
    return page.go("/routing/routes", f"routing.switched.{state}", id=id)


async def ask_to_remove(page: Page) -> Response:
    return page.show("routing/remove.html", route=await _route(page))


async def remove_route(page: Page) -> Response:
    id = page.id
    await page.api.as_role(ROLE, lambda engine: route_commands.remove(engine, id, page.actor))
    return page.go("/routing/routes", "routing.route_removed", id=id)


async def show_preview(page: Page) -> Response:
    """What would be decided now about one event, or about the last ones. Nothing is written."""
    fields = Fields(page.query, page.words)
    event, last = fields.whole("event"), fields.whole("last", most=MOST_PREVIEWED)
    found = []
    if (event or last) and not fields.errors:
        try:
            found = await page.api.as_role(
                "observer", lambda engine: preview(engine, event_id=event or None, last=last)
            )
        except NotFound:
            fields.errors["event"] = page.words("routing.no_such_event", id=event)
    return page.show(
        "routing/preview.html",
        422 if fields.errors else 200,
        errors=fields.errors,
        found=found,
        asked=bool(event or last),
        reasons=_REASONS,
    )


async def dead_letters(page: Page) -> Response:
    all_too = page.query["all"] == "yes"
    found = await page.listed(
        "route dead letters",
        {"all": all_too},
        PageObserver,
        lambda observer, place: observer.route_dead_letters(all_too, ROWS, place),
    )
    return page.show("routing/dead_letters.html", all_too=all_too, **found)


async def dead_letter(page: Page) -> Response:
    id = page.id
    letter = await page.read(RoutingObserver, lambda observer: observer.route_dead_letter(id))
    return page.show("routing/dead_letter.html", letter=letter)


async def replay(page: Page) -> Response:
    id = page.id
    to = f"/routing/dead-letters/{id}"
    try:
        done = await page.api.as_role(
            "event_router", lambda engine: replay_letter(engine, id, page.actor), wakes="orchestrator"
        )
    except GateClosed as closed:
        return page.go(to, refused=closed)
    if done.was_resolved:
        return page.go(to, "routing.was_resolved")
    if not done.is_resolved:
        said = done.error or ", ".join(map(page.words.of_status, done.statuses))
        return page.go(to, "routing.not_resolved", is_good=False, said=said)
    return page.go(to, "routing.replayed")


async def _route(page: Page) -> Shown:
    id = page.id
    return await page.read(RoutingObserver, lambda observer: observer.route(id))


def _given(page: Page) -> dict[str, Any]:
    """What the form says of a route; all of it."""
    form = page.form
    target = RouteTarget.TASK if form["target"] == RouteTarget.TASK else RouteTarget.WEBHOOK
    return {
        "event_type": form.text("event_type"),
        "event_domain": form.text("event_domain"),
        "event_stream": form.text("event_stream"),
        "target": target,
        "task_biz_type": form.text("task_biz_type") if target is RouteTarget.TASK else "",
        "enabled": form["enabled"] == "yes",
        "dry_run": form["dry_run"] == "yes",
    }


async def _written(
    page: Page, act: Callable[[Engine], Awaitable[Route]], done: str, route: Mapping[str, Any] | None = None
) -> Response:
    try:
        made = await page.api.as_role(ROLE, act)
    except InputRefused as refused:
        return _form(page, _given(page), route=route, errors=page.errors(refused), status=422)
    return page.go("/routing/routes", done, id=made.id)


def _form(
    page: Page,
    values: Mapping[str, Any],
    *,
    route: Mapping[str, Any] | None = None,
    errors: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    return page.show("routing/route.html", status, values=values, route=route, errors=errors or {})


routes = [
    get("/routing", index, of_all_domains=True),
    get("/routing/routers/{name}", show_router, of_all_domains=True),
    post("/routing/routers/{name}/rewind", rewind, Scope.OPERATOR),
    post("/routing/routers/{name}/confirm", confirm, Scope.OPERATOR),
    # What is skipped is not delivered.
    post("/routing/routers/{name}/skip", skip, Scope.ADMIN),
    post("/routing/gates", set_gate, Scope.OPERATOR),
    get("/routing/routes", list_routes, of_all_domains=True),
    post("/routing/routes", add_route, Scope.ADMIN),
    get("/routing/routes/new", new_route, Scope.ADMIN, of_all_domains=True),
    get("/routing/routes/{id:int}", show_route, of_all_domains=True),
    post("/routing/routes/{id:int}", edit_route, Scope.ADMIN),
    post("/routing/routes/{id:int}/switch", switch_route, Scope.ADMIN),
    get("/routing/routes/{id:int}/remove", ask_to_remove, Scope.ADMIN, of_all_domains=True),
    post("/routing/routes/{id:int}/remove", remove_route, Scope.ADMIN),
    get("/routing/preview", show_preview, of_all_domains=True),
    get("/routing/dead-letters", dead_letters, of_all_domains=True),
    get("/routing/dead-letters/{id:int}", dead_letter, of_all_domains=True),
    post("/routing/dead-letters/{id:int}/replay", replay, Scope.OPERATOR),
]
