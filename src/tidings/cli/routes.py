"""`routes`: which events go where."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.listing import AsJson, Limit, say_more, show_list, show_one
from tidings.cli.output import say
from tidings.decisions.routing import Decision
from tidings.model.event import LoggedEvent
from tidings.model.route import EVERY_DOMAIN, Route, RouteTarget
from tidings.roles.observer import preview as previewing
from tidings.roles.observer.listing import END
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.routes import routes as admin

ROLE = "route_admin"
COLUMNS = ("id", "event_type", "event_domain", "event_stream", "target", "task_biz_type", "enabled", "dry_run")
PREVIEW_COLUMNS = ("event_id", "event_type", "event_domain", "route", "kind", "status", "matched", "reason", "detail")

app = typer.Typer(help="Which events go where: the most specific route wins, for webhooks and for each type of task.")

Domain = Annotated[str, typer.Option(help="Domain, or a pattern.")]
Stream = Annotated[str, typer.Option(help="Stream, or a pattern; '' is exactly the empty stream.")]
Task = Annotated[str | None, typer.Option(help="The type of the tasks that are made.")]
Id = Annotated[int, typer.Argument(min=1, max=END)]


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="routes", no_args_is_help=True)


@app.command()
def add(
    type: Annotated[str, typer.Option(help="Event type, or a pattern: order.* or *.")],
    domain: Domain = EVERY_DOMAIN,
    stream: Stream = "*",
    target: Annotated[RouteTarget | None, typer.Option(help="webhook, unless --task is given.")] = None,
    task: Task = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Record that it is off; make nothing.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Record the decisions; make nothing.")] = False,
    json: AsJson = False,
) -> None:
    """Add a route."""
    route = Route(
        id=0,
        event_domain=domain,
        event_type=type,
        event_stream=stream,
        target=target or (RouteTarget.WEBHOOK if task is None else RouteTarget.TASK),
        task_biz_type=task or "",
        enabled=not disabled,
        dry_run=dry_run,
    )
    made = as_role(ROLE, lambda engine: admin.add(engine, route, person()))
    show_one(asdict(made), as_json=json)


@app.command("list")
def list_(
    limit: Limit = 100,
    after: Annotated[int, typer.Option(help="Go on after this route.")] = 0,
    json: AsJson = False,
) -> None:
    """List the routes."""
    page = observed(RoutingObserver, lambda observer: observer.routes(limit, [after]))
    shown = page.items if json else [{**one, "event_stream": one["event_stream"] or "(empty)"} for one in page.items]
    show_list(shown, COLUMNS, as_json=json, nothing="There is no route: no event comes to anything.")
    say_more(page.next, "--after")


@app.command()
def edit(
    id: Id,
    type: Annotated[str | None, typer.Option(help="Event type, or a pattern.")] = None,
    domain: Annotated[str | None, typer.Option(help="Domain, or a pattern.")] = None,
    stream: Annotated[str | None, typer.Option(help="Stream, or a pattern.")] = None,
    target: Annotated[RouteTarget | None, typer.Option(help="Where matching events go.")] = None,
    task: Task = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether it is in force.")] = None,
    dry_run: Annotated[bool | None, typer.Option("--dry-run/--live", help="Whether it only records.")] = None,
    json: AsJson = False,
) -> None:
    """Change what is named of a route; the rest stays."""
    named = {
        "event_type": type,
        "event_domain": domain,
        "event_stream": stream,
        "target": target,
        "task_biz_type": task,
        "enabled": enabled,
        "dry_run": dry_run,
    }
    changes = {name: value for name, value in named.items() if value is not None}
    after = as_role(ROLE, lambda engine: admin.edit(engine, id, person(), **changes))
    show_one(asdict(after), as_json=json)


@app.command()
def remove(id: Id) -> None:
    """Remove a route. What it has made stays."""
    as_role(ROLE, lambda engine: admin.remove(engine, id, person()))
    say(f"Route {id} is gone; what it has made stays.")


@app.command()
def preview(
    event: Annotated[int | None, typer.Option(help="One event.", min=1, max=END)] = None,
    last: Annotated[int, typer.Option(help="The newest events, so many.", min=1, max=1000)] = 10,
    json: AsJson = False,
) -> None:
    """Show what would be decided about events now, whatever was decided before. Nothing is written."""
    found = as_role("observer", lambda engine: previewing.preview(engine, event_id=event, last=last))
    decided = [_told(one.event, decision) for one in found for decision in one.decisions]
    show_list(decided, PREVIEW_COLUMNS, as_json=json, nothing="There is no event.")


def _told(event: LoggedEvent, decision: Decision) -> dict[str, Any]:
    """`subscriptions` and `task_biz_type` are what would get it; `matched` is how many that are."""
    return {
        **{"event_id": event.id, "event_type": event.event_type, "event_domain": event.event_domain},
        **{"route": decision.route_id, "kind": decision.route_kind, "status": decision.status.value},
        **{"matched": decision.matched, "reason": decision.reason, "detail": decision.detail},
        "subscriptions": list(decision.subscriptions),
        "task_biz_type": decision.biz_type,
    }
