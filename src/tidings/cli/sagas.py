"""`sagas`: the delivery of one event to one subscription, its attempts, and how to send it once more."""

from typing import Annotated

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.generations import show_generations
from tidings.cli.listing import AsJson, Limit, say_more, show_list, show_one
from tidings.cli.output import out
from tidings.errors import InputRefused
from tidings.model.saga import SAGA_MOVES, SagaStatus
from tidings.roles.dead_letters import requeueing
from tidings.roles.observer.filters import SagaFilter
from tidings.roles.observer.listing import END, Page
from tidings.roles.observer.pages import PageObserver

COLUMNS = ("id", "event_id", "subscription_id", "status", "attempt_count", "next_attempt_at", "final_error_code")
JOB_COLUMNS = ("id", "attempt_no", "status", "response_status", "error_code", "duration_ms", "worker_id", "finished_at")
OPEN = [status for status in SagaStatus if SAGA_MOVES[status]]

app = typer.Typer(help="Deliveries: each event to each of its subscriptions.")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="sagas", no_args_is_help=True)


@app.command("list")
def list_(
    event: Annotated[int | None, typer.Option(min=1, max=END, metavar="ID", help="Only those of this event.")] = None,
    status: Annotated[SagaStatus | None, typer.Option(help="Only these, the longest due first.")] = None,
    subscription: Annotated[
        int | None, typer.Option(min=1, max=END, metavar="ID", help="With --status: only of this subscription.")
    ] = None,
    after: Annotated[
        int | None, typer.Option(min=1, max=END, metavar="ID", help="With --status: go on after this one of a page.")
    ] = None,
    before: Annotated[
        int | None, typer.Option(min=1, max=END, metavar="ID", help="Else: go on after this one of a page.")
    ] = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List deliveries, newest first: all, those of an event, or those that wait."""
    _check(event, status, subscription)

    async def found(observer: PageObserver) -> Page:
        if status is not None:
            place = [(await observer.saga(after))["next_attempt_at"].isoformat(), after] if after else None
            return await observer.open_sagas(status, subscription or 0, limit, place)
        place = [before] if before else None
        if event:
            return await observer.sagas_of_event(event, "", limit, place)
        return await observer.sagas(SagaFilter(), limit, place)

    page = observed(PageObserver, found)
    show_list(page.items, COLUMNS, as_json=json, nothing="There is no such saga.")
    say_more(page.next, "--before" if status is None else "--after")


def _check(event: int | None, status: SagaStatus | None, subscription: int | None) -> None:
    if event and status is not None:
        raise InputRefused("Event and status can't be combined: no index would serve that.", "Choose one.")
    if status is not None and status not in OPEN:
        raise InputRefused(
            f"Sagas that are {status} can't be listed by themselves: no index would serve that.",
            "`tidings sagas list` shows the newest of all, `tidings dead-letters list` what was given up.",
            field="status",
        )
    if subscription and status is None:
        raise InputRefused(
            "A subscription's sagas are listed by status: no index would serve the rest.",
            f"Add --status {', '.join(OPEN)}.",
            field="subscription",
        )


@app.command()
def show(id: Annotated[int, typer.Argument(min=1, max=END)], json: AsJson = False) -> None:
    """Show one delivery, with its attempts, the last first."""
    saga = dict(observed(PageObserver, lambda observer: observer.saga(id)))
    if json:
        show_one(saga, as_json=True)
        return
    jobs = saga.pop("jobs")
    show_one(saga, as_json=False)
    out.print()
    show_list(jobs, JOB_COLUMNS, as_json=False, nothing="No attempt has been made yet.")


@app.command()
def resend(
    ids: Annotated[list[int], typer.Argument(min=1, max=END, metavar="ID…", help="Which completed sagas.")],
    json: AsJson = False,
) -> None:
    """Send once more what was delivered, each as a new saga. Ends with 1 if any is refused."""
    done = as_role(
        "dead_letter_operator", lambda engine: requeueing.resend(engine, ids, person()), wakes="orchestrator"
    )
    show_generations(done, as_json=json)
