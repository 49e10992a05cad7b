"""Measures the queue of tasks: `python -m bench.tasks [--tasks N] [--engine …] [--json FILE]`.

Handlers that do nothing, on a server that shares this machine. The last two cases are workers that wait for something:
eight of them should come near to eight times one. `python -m bench.peers` puts it beside other queues.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from bench.engines import engines, parser_of, write_json
from bench.servers import measured_server
from bench.showing import out, table
from bench.tasks.ours import CLAIMERS, Result, measure
from tests.support.database import Database
from tidings.cli.running import run_in_loop

HEADINGS = ("case", "tasks", "seconds", "tasks /s", "lost races")


def race(engine: str, tasks: int, singly: int) -> list[Result]:
    with measured_server(engine) as server:
        database = Database(server)
        asyncio.run(database.migrate())
        return run_in_loop(measure(database, tasks, singly))


def row(one: Result) -> Sequence[str]:
    lost = f"{one.lost:.1%}" if "enqueue" not in one.case else ""
    return one.case, f"{one.tasks:,}", f"{one.seconds:.1f}", f"{one.rate:,.0f}", lost


def main() -> None:
    parser = parser_of("tasks", "Measures the queue of tasks.")
    parser.add_argument("--tasks", type=int, default=50_000, help="in each of the first cases")
    parser.add_argument("--singly", type=int, default=2_000, help="how many of them are enqueued one by one")
    options = parser.parse_args()
    figures = {}
    for engine in engines(options.engine):
        found = race(engine, options.tasks, options.singly)
        out.print(table(f"{engine}: tasks in a second", HEADINGS, map(row, found)))
        *_, alone, together = found
        part = together.rate / (CLAIMERS * alone.rate)
        out.print(f"{CLAIMERS} workers do {part:.2f} of {CLAIMERS} times what one does.")
        figures[engine] = [asdict(one) | {"rate": one.rate} for one in found]
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
