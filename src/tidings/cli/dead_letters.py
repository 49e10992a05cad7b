"""`dead-letters`: what was given up, and how to send it again: a few by id, or many by a filter, at a pace."""

import datetime
from typing import Annotated

import typer

from tidings.cli.acting import as_role, observed, person
from tidings.cli.generations import show_generations
from tidings.cli.listing import AsJson, Limit, moment, say_more, show_list, show_one
from tidings.cli.output import say, show_json
from tidings.cli.progress import requeue_progress
from tidings.errors import InputRefused
from tidings.model.dead_letter import MassRequeueStatus
from tidings.roles.dead_letters import requeueing
from tidings.roles.dead_letters.operations import Filter, MassRequeue
from tidings.roles.dead_letters.requeueing import Preview
from tidings.roles.observer.filters import LetterFilter
from tidings.roles.observer.letters import LetterObserver
from tidings.roles.observer.listing import END, EVER, NEVER, Shown
from tidings.roles.observer.pages import PageObserver

ROLE = "dead_letter_operator"
COLUMNS = ("id", "event_id", "subscription_id", "failed_at", "final_error_code", "requeued_as")
MASS_COLUMNS = ("id", "status", "done", "requeued", "refused", "requested_by", "created_at")

app = typer.Typer(help="What could not be delivered, and its way back.")

Id = Annotated[int, typer.Argument(min=1, max=END)]
OfSubscription = Annotated[int | None, typer.Option(min=1, max=END, metavar="ID", help="Only of this subscription.")]
Before = Annotated[int | None, typer.Option(min=1, max=END, metavar="ID", help="Go on after this one of a page.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="dead-letters", no_args_is_help=True)


@app.command("list")
def list_(
    subscription: OfSubscription = None,
    before: Before = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List dead letters, newest first, and what became of those that were requeued."""
    filter, place = LetterFilter(subscription_id=subscription or 0), [before] if before else None
    page = observed(PageObserver, lambda observer: observer.dead_letters(filter, limit, place))
    shown = page.items if json else [{**one, "requeued_as": _again(one)} for one in page.items]
    show_list(shown, COLUMNS, as_json=json, nothing="There is no dead letter.")
    say_more(page.next, "--before")


@app.command()
def show(id: Id, json: AsJson = False) -> None:
    """Show one of them, with what the event said."""
    found = observed(PageObserver, lambda observer: observer.dead_letter(id))
    show_one(found, as_json=json)


@app.command()
def requeue(
    ids: Annotated[
        list[int] | None, typer.Argument(min=1, max=END, metavar="ID…", help="Which, if there are few.")
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="All there are now.")] = False,
    subscription: OfSubscription = None,
    error: Annotated[str, typer.Option(help="Only with this error code.")] = "",
    type_: Annotated[str, typer.Option("--type", help="Only of events of this type.")] = "",
    since: Annotated[
        str | None, typer.Option(help="Only given up since then: 2026-01-31T10:00:00Z, or 2h, 3d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only given up until then.")] = None,
    rate: Annotated[int, typer.Option(help="How many a second.")] = 100,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Send dead letters again, each as a new saga: by id, or by a filter, as a stored operation that can be resumed.

    Ends with 1 if any that was named is refused.
    """
    by_filter = bool(all or subscription or error or type_ or since or until)
    if bool(ids) == by_filter:
        raise InputRefused(
            "Say which dead letters: their ids, or a filter.",
            "Options --all, --subscription, --error, --type, --since, --until.",
        )
    if ids:
        done = as_role(ROLE, lambda engine: requeueing.requeue(engine, ids, person()), wakes="orchestrator")
        show_generations(done, as_json=json)
        return
    began, ended = moment(since, "since") or EVER, moment(until, "until") or NEVER
    _requeue_many(Filter(began, ended, subscription or 0, error, type_), rate, yes=yes, as_json=json)


def _requeue_many(chosen: Filter, rate: int, *, yes: bool, as_json: bool) -> None:
    seen = as_role(ROLE, lambda engine: requeueing.preview(engine, chosen))
    _show_preview(seen, rate)
    if not seen.total:
        return
    if not yes:
        typer.confirm("Send them again?", abort=True, err=True)
    mass_id = as_role(ROLE, lambda engine: requeueing.begin(engine, chosen, rate, person()))
    _run(mass_id, seen.total, as_json=as_json)


@app.command()
def requeues(
    before: Before = None,
    limit: Limit = 50,
    json: AsJson = False,
) -> None:
    """List requeues by filter, newest first, and how far each has come."""
    page = observed(LetterObserver, lambda observer: observer.mass_requeues(limit, [before] if before else None))
    shown = page.items if json else [_worded(one) for one in page.items]
    show_list(shown, MASS_COLUMNS, as_json=json, nothing="There was none yet.")
    say_more(page.next, "--before")


@app.command()
def resume(id: Id, json: AsJson = False) -> None:
    """Go on with a requeue that was interrupted."""
    stands = as_role(ROLE, lambda engine: requeueing.look(engine, id))
    _run(id, stands.total, as_json=json)


@app.command()
def cancel(id: Id) -> None:
    """End a requeue that is not done: what was requeued stays so, the rest stays dead."""
    stands = as_role(ROLE, lambda engine: requeueing.cancel(engine, id, person()))
    say(f"Requeue {id} is {stands.status}: {_counted(stands)}.")


def _run(mass_id: int, total: int, *, as_json: bool) -> None:
    try:
        with requeue_progress(total) as show_progress:
            stands = as_role(
                ROLE,
                lambda engine: requeueing.run(engine, mass_id, lambda now: show_progress(now.handled)),
            )
    except KeyboardInterrupt:
        say(f"Interrupted. To go on: tidings dead-letters resume {mass_id}. To end it: … cancel {mass_id}.")
        raise typer.Exit(130) from None
    if as_json:
        show_json({"id": stands.id, "status": str(stands.status), "total": stands.total, **_counts(stands)})
    else:
        say(f"Requeue {mass_id} is {stands.status}: {_counted(stands)}.")
    if stands.status is MassRequeueStatus.CANCELLED:
        raise typer.Exit(1)


def _show_preview(seen: Preview, rate: int) -> None:
    seconds = datetime.timedelta(seconds=-(-seen.total // max(1, rate)))
    what = "dead letter" if seen.total == 1 else "dead letters"
    say(f"{seen.total} {what}, at {rate} a second: about {seconds}." if seen.total else "There is none of these.")
    for subscription, (active, letters) in seen.refused.items():
        why = "is not verified" if active else "is inactive"
        say(f"  {letters} of them will be refused: subscription {subscription} {why}.")


def _counts(stands: MassRequeue) -> dict[str, int]:
    return {"requeued": stands.started_count, "already": stands.already_count, "refused": stands.refused_count}


def _counted(stands: MassRequeue) -> str:
    return f"{stands.started_count} requeued, {stands.already_count} were before, {stands.refused_count} refused"


def _again(row: Shown) -> str:
    return f"{row['requeued_as']} {row['requeued_status']}" if row["requeued_as"] else ""


def _worded(row: Shown) -> Shown:
    handled = row["started_count"] + row["already_count"] + row["refused_count"]
    return {
        **row,
        "done": f"{handled} of {row['total']}",
        "requeued": row["started_count"],
        "refused": row["refused_count"],
    }
