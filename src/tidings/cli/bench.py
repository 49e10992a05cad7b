"""`bench`: how fast it is on this machine: published, routed, delivered, on a throwaway database."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from tidings.cli.demo import prepare, throwaway_directory, throwaway_server, throwaway_settings
from tidings.cli.listing import AsJson
from tidings.cli.output import out, say, show_json
from tidings.cli.progress import counting_progress
from tidings.cli.running import run_in_loop
from tidings.demo.measuring import Measure, Stage
from tidings.wiring import Installation, rules_of


def add_to(app: typer.Typer) -> None:
    app.command()(bench)


def bench(
    events: Annotated[int, typer.Option(min=100, max=1_000_000, help="How many events to measure with.")] = 5_000,
    json: AsJson = False,
) -> None:
    """Measure how many events a second are published, routed and delivered here, each stage alone.

    On an embedded PostgreSQL that is made for this and removed afterwards; one process does all the work, and a
    receiver on this machine takes it over HTTPS. Your own database is not touched.
    """
    settings = throwaway_settings()
    with throwaway_directory() as directory, throwaway_server(directory) as server:
        stages = run_in_loop(measure(Installation(settings, server), events, directory))
    if json:
        show_json([{**vars(stage), "per_second": round(stage.per_second, 1)} for stage in stages])
    else:
        show(stages)


async def measure(found: Installation, events: int, directory: Path) -> list[Stage]:
    certificate = await prepare(found, directory)
    with counting_progress("measuring", "events") as progress:
        taking = Measure(found, rules_of(found.settings), events, lambda name, done, total: progress(done, total))
        return await taking.take(certificate)


def show(stages: list[Stage]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("", "events", "seconds", "a second"):
        table.add_column(heading, justify="left" if not heading else "right")
    for stage in stages:
        table.add_row(stage.name, f"{stage.events:,}", f"{stage.seconds:.2f}", f"{stage.per_second:,.0f}")
    out.print(table, soft_wrap=False)
    say("With the database, the roles and the receiver all on this machine. More processes and machines do more.")
