"""`gates`: whether anything is routed at all, and by which router."""

from typing import Annotated

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.listing import AsJson, Reason, show_list
from tidings.cli.output import say
from tidings.db.engine import Engine
from tidings.errors import InputRefused
from tidings.model.route import DEFAULT_ROUTER, ROUTING_GATE, router_gate
from tidings.roles.observer.listing import Shown
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.routes import gates as admin

ROLE = "route_admin"
ALL = (router_gate(DEFAULT_ROUTER), ROUTING_GATE)
OPENING = "tidings gates open --all"

app = typer.Typer(help=f"A router works only while {ROUTING_GATE} and its own gate are open; a missing one is closed.")

Name = Annotated[str | None, typer.Argument(metavar="GATE", help="routing, or router:NAME.")]
All = Annotated[bool, typer.Option("--all", help=f"{' and '.join(reversed(ALL))}.")]


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="gates", no_args_is_help=True)


@app.command("list")
def list_(json: AsJson = False) -> None:
    """List the gates that decide something."""
    found = observed(RoutingObserver, RoutingObserver.gates)
    show_list(
        found if json else [_worded(gate) for gate in found],
        ("gate", "is", "since", "by", "reason"),
        as_json=json,
        nothing="",
    )


@app.command("open")
def open_(name: Name = None, all: All = False, reason: Reason = "") -> None:
    """Open a gate."""
    names = _chosen(name, all)

    async def work(engine: Engine) -> None:
        for one in names:
            await admin.open(engine, one, reason, person())

    as_role(ROLE, work)
    say(f"Open: {', '.join(names)}.")


@app.command()
def close(name: Name = None, all: All = False, reason: Reason = "") -> None:
    """Close a gate; when this ends, no router goes on that had not noticed."""
    names = _chosen(name, all)

    async def work(engine: Engine) -> None:
        for one in reversed(names):
            await admin.close(engine, one, reason, person())

    as_role(ROLE, work)
    say(f"Closed: {', '.join(names)}. Nothing is lost: what is published waits in the log.")


def _chosen(name: str | None, all: bool) -> tuple[str, ...]:
    if all == (name is not None):
        raise InputRefused("Name one gate, or say --all.", "`tidings gates list` shows them.", field="name")
    return ALL if name is None else (name,)


def _worded(gate: Shown) -> Shown:
    was_made = gate["changed_at"] is not None
    return {
        "gate": gate["name"],
        "is": "open" if gate["is_open"] else "closed",
        "since": gate["changed_at"],
        "by": gate["changed_by"],
        "reason": gate["reason"] if was_made else "never opened",
    }
