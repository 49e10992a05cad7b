"""`events`: the log, and what was decided about one event."""

from typing import Annotated

import typer

from tidings.cli.acting import observed
from tidings.cli.listing import AsJson, Limit, moment, say_more, show_list, show_one
from tidings.cli.output import out
from tidings.errors import InputRefused
from tidings.roles.observer.filters import EventFilter
from tidings.roles.observer.listing import END, Page
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.observer.searching import EventSearcher

COLUMNS = ("id", "created_at", "event_type", "event_domain", "event_stream", "external_id")
ATTEMPT_COLUMNS = ("attempt_no", "worker_name", "route_id", "route_kind", "status", "matched", "reason", "detail")

app = typer.Typer(help="The log of events.")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="events", no_args_is_help=True)


@app.command("list")
def list_(
    type: Annotated[str, typer.Option(help="Only this type.")] = "",
    external_id: Annotated[str, typer.Option(help="Only the one that has this external id.")] = "",
    domain: Annotated[str, typer.Option(help="The domain of the external id.")] = "default",
    since: Annotated[str | None, typer.Option(help="Only from then on: 2026-01-31T10:00:00Z, or 15m, 2h, 3d.")] = None,
    until: Annotated[str | None, typer.Option(help="Only until then.")] = None,
    before: Annotated[int | None, typer.Option(min=1, max=END, help="Go on after this event of a page.")] = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List events, newest first: all, or by type, by external id, or by time. One of these at a time."""
    if bool(type) + bool(external_id) + (since is not None or until is not None) > 1:
        raise InputRefused(
            "Type, external id and time can't be combined: no index would serve that.", "Choose one.", field="type"
        )
    filter = EventFilter(event_type=type, since=moment(since, "since"), until=moment(until, "until"))

    async def found(observer: EventSearcher) -> Page:
        if external_id:
            return await observer.event_with_external_id(domain, external_id)
        return await observer.page(filter, limit, await observer.place_after(before, filter) if before else None)

    page = observed(EventSearcher, found)
    show_list(page.items, COLUMNS, as_json=json, nothing="There is no such event.")
    say_more(page.next, "--before")


@app.command()
def show(id: Annotated[int, typer.Argument(min=1, max=END)], json: AsJson = False) -> None:
    """Show one event, with its payload and what routers decided about it."""
    event = dict(observed(RoutingObserver, lambda observer: observer.event(id)))
    if json:
        show_one(event, as_json=True)
        return
    attempts = event.pop("route_attempts")
    show_one(event, as_json=False)
    out.print()
    show_list(attempts, ATTEMPT_COLUMNS, as_json=False, nothing="No router has decided about it yet.")
