"""`routers`: where each router is in the log, and the commands a person can give it."""

from typing import Annotated

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.listing import AsJson, Limit, Reason, say_more, show_list, show_one
from tidings.cli.output import say
from tidings.model.route import router_gate
from tidings.roles.observer.listing import Shown, page_of
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.routes import routers as admin

ROLE = "route_admin"
COLUMNS = ("router", "event_domain", "position", "lag", "holes", "sent", "failed", "moved")

app = typer.Typer(help="Where each router is in the log, and what a person can tell it.")

Name = Annotated[str, typer.Argument(metavar="ROUTER", help="Its name.")]


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="routers", no_args_is_help=True)


@app.command("list")
def list_(
    limit: Limit = 100,
    after: Annotated[str, typer.Option(help="Go on after this router.")] = "",
    json: AsJson = False,
) -> None:
    """List the routers. The lag counts ids, of every domain: it is never less than what is waiting."""
    found = observed(RoutingObserver, lambda observer: observer.routers(limit, after))
    show_list(
        found if json else [_worded(router) for router in found],
        COLUMNS,
        as_json=json,
        nothing="There is no router yet; the first pass of `tidings run router` makes it.",
    )
    say_more(page_of(found, limit, lambda row: [row["worker_name"]]).next, "--after")


@app.command()
def show(name: Name, json: AsJson = False) -> None:
    """Show one router, with its holes."""
    found = observed(RoutingObserver, lambda observer: observer.router(name))
    show_one(found if json else {**found, "holes": _spans(found["holes"], found["hole_ranges"])}, as_json=json)


@app.command()
def add(name: Name, domain: Annotated[str, typer.Option(help="Its domain, or * for those that no other has.")]) -> None:
    """Add a router, which takes its domain over exactly where the router of every domain is."""
    made = as_role(ROLE, lambda engine: admin.add(engine, name, domain, person()))
    say(f"The router {name} begins after event {made.place.position}. To start it:")
    say(f"  tidings gates open {router_gate(name)}\n  tidings run router --name {name}")


@app.command()
def skip(
    name: Name,
    to: Annotated[int, typer.Option(help="The last event that it shall pass over.")],
    reason: Reason,
) -> None:
    """Move a router forward. What it passes over is not routed."""
    as_role(ROLE, lambda engine: admin.skip(engine, name, to, reason, person()))
    say(f"The router {name} goes on after event {to}. `tidings routers rewind` undoes it.")


@app.command()
def rewind(
    name: Name,
    to: Annotated[int, typer.Option(help="The last event that it shall not read again; 0 for the beginning.")],
    reason: Reason = "",
) -> None:
    """Move a router back. It reads again what follows; nothing is routed twice."""
    as_role(ROLE, lambda engine: admin.rewind(engine, name, to, reason, person()))
    say(f"The router {name} goes on after event {to}.")


@app.command()
def confirm(name: Name, reason: Reason = "") -> None:
    """Let a router go on that holds because the log is not the one it knew."""
    now = as_role(ROLE, lambda engine: admin.confirm(engine, name, reason, person()))
    say(f"The router {name} goes on after event {now.place.position}.")


def _worded(router: Shown) -> Shown:
    return {
        "router": router["worker_name"],
        "event_domain": router["event_domain"],
        "position": router["position"],
        "lag": router["lag"],
        "holes": router["hole_ids"],
        "sent": router["sent_count"],
        "failed": router["failed_count"],
        "moved": router["updated_at"],
    }


def _spans(holes: list[Shown], of: int) -> str:
    spans = [f"{hole['lo']}" if hole["lo"] == hole["hi"] else f"{hole['lo']}–{hole['hi']}" for hole in holes[:20]]
    more = f" and {of - len(spans)} more" if of > len(spans) else ""
    return ", ".join(spans) + more
