"""Measures the queue of tasks: `python -m bench.tasks [--tasks N] [--peers] [--engine …] [--json FILE]`.

Handlers that do nothing, on a server that shares this machine. With `--peers` procrastinate and pgqueuer do the same on
the same PostgreSQL, fetched from PyPI into a Python of their own. The last two cases are workers that wait for
something: eight of them should come near to eight times one.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console
from rich.table import Table

from bench.engines import engines, parser_of, write_json
from bench.tasks.ours import Result, measure
from bench.tasks.peers import Peer, measure_peers
from tests.support.database import SERVERS, Database
from tidings.cli.running import run_in_loop

out = Console(highlight=False, soft_wrap=True, width=120)


def race(engine: str, tasks: int, singly: int, peers: bool) -> tuple[list[Result], list[Peer]]:
    with SERVERS[engine]() as server:
        database = Database(server)
        asyncio.run(database.migrate())
        ours = run_in_loop(measure(database, tasks, singly))
        theirs = measure_peers(database, tasks) if peers and database.family == "postgresql" else []
    return ours, theirs


def table(engine: str, found: Sequence[Result]) -> Table:
    shown = Table(title=f"{engine}: tasks in a second", title_justify="left")
    for heading in ("case", "tasks", "seconds", "tasks /s", "lost races"):
        shown.add_column(heading, justify="left" if heading == "case" else "right", no_wrap=True)
    for one in found:
        lost = f"{one.lost:.1%}" if "enqueue" not in one.case else ""
        shown.add_row(one.case, f"{one.tasks:,}", f"{one.seconds:.1f}", f"{one.rate:,.0f}", lost)
    return shown


def table_of_peers(ours: Sequence[Result], peers: Sequence[Peer]) -> Table:
    shown = Table(title="beside peers, tasks in a second", title_justify="left")
    for heading in ("", "tasks", "one by one", "in bulk", "drained", "ours drained"):
        shown.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    single, bulk, drain, *_ = ours
    shown.add_row(
        "tidings", f"{drain.tasks:,}", f"{single.rate:,.0f}", f"{bulk.rate:,.0f}", f"{drain.rate:,.0f}", "1.0 ×"
    )
    for one in peers:
        ratio = f"{drain.rate / one.drain:.1f} ×"
        shown.add_row(one.name, f"{one.tasks:,}", f"{one.single:,.0f}", f"{one.bulk:,.0f}", f"{one.drain:,.0f}", ratio)
    return shown


def main() -> None:
    parser = parser_of("tasks", "Measures the queue of tasks.")
    parser.add_argument("--tasks", type=int, default=50_000, help="in each of the first cases")
    parser.add_argument("--singly", type=int, default=2_000, help="how many of them are enqueued one by one")
    parser.add_argument("--peers", action="store_true", help="fetch the peers from PyPI and measure them too")
    options = parser.parse_args()
    figures = {}
    for engine in engines(options.engine):
        ours, peers = race(engine, options.tasks, options.singly, options.peers)
        out.print(table(engine, ours))
        *_, alone, together = ours
        out.print(f"Eight workers do {together.rate / (8 * alone.rate):.2f} of eight times what one does.")
        if peers:
            out.print(table_of_peers(ours, peers))
        figures[engine] = {
            "ours": [asdict(one) | {"rate": one.rate} for one in ours],
            "peers": [asdict(one) for one in peers],
        }
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
