"""Measures the whole way: `python -m bench.deliver [--events N] [--engine …] [--profile FILE]`.

Events are in the log; from the moment at which the gates open, one process with all roles routes, starts, sends to a
sink in another process, reports and completes them. Everything shares this machine, the database too.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.deliver.run import Result, race
from bench.engines import engines, parser_of, write_json
from tests.support.database import SERVERS, Database

# Subscriptions, and how much of the given number of events.
CASES = ((1, 1.0), (5, 0.2))

out = Console(highlight=False, soft_wrap=True, width=120)


async def measure(engine: str, events: int, seconds: float, profile: Path | None) -> list[Result]:
    with SERVERS[engine]() as server:
        database = Database(server)
        await database.migrate()
        return [
            await race(database, subscriptions, round(events * part), seconds, profile) for subscriptions, part in CASES
        ]


def table(engine: str, found: Sequence[Result]) -> Table:
    shown = Table(title=f"{engine}: from accepted events to completed sagas", title_justify="left")
    for heading in ("subscriptions", "events", "completed", "seconds", "sagas /s", "first after", "CPU", "lost leases"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        shown.add_row(
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
    found = {}
    for engine in engines(options.engine):
        found[engine] = asyncio.run(measure(engine, options.events, options.seconds, options.profile))
        out.print(table(engine, found[engine]))
    write_json(options.json, {engine: [asdict(one) for one in results] for engine, results in found.items()})


if __name__ == "__main__":
    main()
