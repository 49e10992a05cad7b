"""Measures the whole way: `python -m bench.deliver [--events N] [--engine …] [--profile FILE]`.

Events are in the log; from the moment at which the gates open, one process with all roles routes, starts, sends to a
sink in another process, reports and completes them. Everything shares this machine, the database too. The first two
cases differ in the HTTP client alone.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.deliver.run import BATCH, Case, Result, race
from bench.engines import engines, parser_of, write_json
from tests.support.database import SERVERS, Database

HEADINGS = ("client", "subs", "events", "completed", "seconds", "sagas /s", "first after", "CPU", "lost leases")

out = Console(highlight=False, soft_wrap=True, width=120)


def cases(events: int) -> list[Case]:
    """The same work with both clients, and more subscriptions with ours."""
    few = max(1, events // 5 // BATCH) * BATCH
    return [Case(1, events), Case(1, events, "aiohttp"), Case(5, few)]


async def measure(engine: str, events: int, seconds: float, profile: Path | None) -> list[Result]:
    with SERVERS[engine]() as server:
        database = Database(server)
        await database.migrate()
        return [await race(database, case, seconds, profile) for case in cases(events)]


def table(engine: str, found: Sequence[Result]) -> Table:
    shown = Table(title=f"{engine}: from accepted events to completed sagas", title_justify="left")
    for heading in (
        "client",
        "subscriptions",
        "events",
        "completed",
        "seconds",
        "sagas /s",
        "first after",
        "CPU",
        "lost leases",
    ):
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        shown.add_row(
            one.client,
            str(one.subscriptions),
            f"{one.events:,}",
            f"{one.completed:,}",
            f"{one.seconds:.1f}",
            f"{one.rate:,.0f}",
            f"{one.first:.2f} s",
            f"{one.cpu:.0%}",
            str(one.resets),
        )
    return shown


def main() -> None:
    parser = parser_of("deliver", "Measures whole deliveries.")
    parser.add_argument("--events", type=int, default=20_000, help="in thousands; with more subscriptions fewer")
    parser.add_argument("--seconds", type=float, default=15, help="for each case, at most")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="where cProfile writes; makes it much slower")
    options = parser.parse_args()
    events = max(1, options.events // BATCH) * BATCH
    found = {}
    for engine in engines(options.engine):
        found[engine] = asyncio.run(measure(engine, events, options.seconds, options.profile))
        out.print(table(engine, found[engine]))
        ours, other, *_ = found[engine]
        out.print(
            f"With our own client {ours.rate / max(other.rate, 1):.1f} × as many sagas each second as with aiohttp."
        )
    write_json(options.json, {engine: [asdict(one) for one in results] for engine, results in found.items()})


if __name__ == "__main__":
    main()
