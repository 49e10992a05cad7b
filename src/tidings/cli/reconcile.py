"""`reconcile`: do both sides of the ledger agree? Ends with 1, and names what does not, if they do not."""

from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from rich.table import Table

from tidings.cli.acting import as_role
from tidings.cli.listing import AsJson, moment
from tidings.cli.output import out, show_json
from tidings.cli.progress import counting_progress
from tidings.db.engine import Engine
from tidings.model.ledger import DELIVERY_FATES, EVENT_FATES, Ledger
from tidings.roles.observer.reconciling import Moment, reconcile

SHOWN = 100


def add_to(root: typer.Typer) -> None:
    root.command("reconcile")(reconcile_)


def reconcile_(
    since: Annotated[str | None, typer.Option(help="Events from then on: 2026-01-31T10:00Z, or 15m, 2h, 3d.")] = None,
    until: Annotated[str | None, typer.Option(help="Events until then.")] = None,
    json: AsJson = False,
) -> None:
    """Compare what was accepted and routed with what became of it. Ends with 1 if they differ."""
    first, last = moment(since, "since"), moment(until, "until")
    with counting_progress("reconciling", "events") as show:
        ledger = as_role("observer", lambda engine: _whole(engine, first, last, show))
    if json:
        show_json(ledger.as_dict())
    else:
        show_ledger(ledger)
    raise typer.Exit(0 if ledger.adds_up else 1)


async def _whole(
    engine: Engine, since: Moment | None, until: Moment | None, show: Callable[[int, int], None]
) -> Ledger:
    ledger = Ledger()
    async for ledger in reconcile(engine, since, until):
        show(ledger.accepted, ledger.last_event - ledger.first_event + 1)
    return ledger


def show_ledger(ledger: Ledger) -> None:
    """The two sides beside each other, then what they do not agree about."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_row("accepted events", f"{ledger.accepted:,}")
    _rows(table, EVENT_FATES, ledger.events)
    table.add_row()
    table.add_row("wanted deliveries", f"{ledger.wanted['webhook']:,}")
    _rows(table, DELIVERY_FATES, ledger.deliveries)
    if ledger.wanted["task"]:
        table.add_row("wanted tasks", f"{ledger.wanted['task']:,}")
    out.print(table)
    if events := ledger.removed["events"]:
        out.print(f"Retention has removed {events:,} more events, each with a finished story, and keeps their totals.")
    out.print()
    for one in ledger.differences[:SHOWN]:
        out.print(f"[red]≠[/] {one.subject} {one.what}")
    if (more := len(ledger.differences) - SHOWN) > 0:
        out.print(f"  … and {more:,} more; `--json` has all of them.")
    out.print("[green]It adds up.[/]" if ledger.adds_up else f"[red]{len(ledger.differences):,} differences.[/]")


def _rows(table: Table, fates: tuple[str, ...], counts: Mapping[str, int]) -> None:
    for fate in fates:
        if counts[fate]:
            table.add_row(f"  {fate.replace('_', ' ')}", f"{counts[fate]:,}")
