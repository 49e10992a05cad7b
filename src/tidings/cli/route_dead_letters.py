"""`route-dead-letters`: events that could not be routed, why, and how to route them again."""

from typing import Annotated, Any

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.listing import AsJson, Limit, say_more, show_list, show_one
from tidings.db.engine import Engine
from tidings.errors import NotFound
from tidings.roles.observer.listing import END, Page
from tidings.roles.observer.pages import PageObserver
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.router.replay import Replayed
from tidings.roles.router.replay import replay as replay_one

COLUMNS = ("id", "event_id", "worker_name", "created_at", "resolution", "error")
REPLAY_COLUMNS = ("id", "event_id", "resolved", "says")

app = typer.Typer(help="Events that could not be routed, whole, and why.")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="route-dead-letters", no_args_is_help=True)


@app.command("list")
def list_(
    all: Annotated[bool, typer.Option("--all", help="Those too that are resolved.")] = False,
    before: Annotated[int, typer.Option(help="Go on after this one of a page.", show_default=False)] = END,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List what waits for a person, newest first."""

    async def found(observer: PageObserver) -> Page:
        page = await observer.route_dead_letters(all, limit, [before])
        # A page looks at so many of them, which may all be resolved.
        while page.next and not page.items:
            page = await observer.route_dead_letters(all, limit, page.next)
        return page

    page = observed(PageObserver, found)
    nothing = "There is none." if all else "There is none that is unresolved."
    show_list(page.items, COLUMNS, as_json=json, nothing=nothing)
    say_more(page.next, "--before")


@app.command()
def show(id: Annotated[int, typer.Argument(min=1, max=END)], json: AsJson = False) -> None:
    """Show one of them, with the event as it was."""
    found = observed(RoutingObserver, lambda observer: observer.route_dead_letter(id))
    show_one(found, as_json=json)


@app.command()
def replay(
    ids: Annotated[list[int], typer.Argument(min=1, max=END, metavar="ID…", help="Which of them.")],
    json: AsJson = False,
) -> None:
    """Route them again, each from its snapshot and by the routes of now. The gates must be open.

    What is sent, or would be in a dry run, is resolved; the rest stays. Ends with 1 if any stays.
    """
    told = as_role("event_router", lambda engine: _replay(engine, ids), wakes="orchestrator")
    show_list(told, REPLAY_COLUMNS, as_json=json, nothing="")
    if not all(one["resolved"] for one in told):
        raise typer.Exit(1)


async def _replay(engine: Engine, ids: list[int]) -> list[dict[str, Any]]:
    told = []
    for id in dict.fromkeys(ids):
        try:
            told.append(_told(await replay_one(engine, id, person())))
        except NotFound as error:
            told.append({"id": id, "event_id": None, "resolved": False, "statuses": [], "says": error.what})
    return told


def _told(done: Replayed) -> dict[str, Any]:
    says = "was resolved before" if done.was_resolved else done.error or ", ".join(done.statuses)
    return {
        "id": done.dead_letter_id,
        "event_id": done.event_id,
        "resolved": done.is_resolved,
        "statuses": list(done.statuses),
        "says": says,
    }
