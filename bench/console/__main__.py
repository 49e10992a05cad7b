"""Measures the console's pages: `python -m bench.console [--events N] [--times N] [--engine …] [--json FILE]`.

On a private server with a million events, three million sagas and four million jobs, made in bulk. What is measured is
the server's own time for each page, the databases and all, beside that of a page that asks for nothing. Fails where the
95th of a hundred takes more than 100 ms.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import uvloop

from bench.console.filling import Filling
from bench.console.pages import Measured, measure, slow
from bench.engines import engines, parser_of, write_json
from bench.servers import measured_server
from bench.showing import out, say, table
from tests.support.database import Database

BAR_MS = 100.0
HEADINGS = ("page", "median ms", "p95 ms", "of it ours", "× a plain page", "KB")


async def run(engine: str, events: int, times: int) -> list[Measured]:
    with measured_server(engine) as server:
        database = Database(server)
        await database.migrate()
        say(f"{engine}: filling in {events:,} events, {3 * events:,} sagas, about {4 * events:,} jobs")
        await Filling.of(database, events, say)
        try:
            return await measure(database, times)
        finally:
            await database.close()


def rows(found: Sequence[Measured]) -> list[Sequence[str]]:
    plain, *_ = found
    return [
        (
            one.page,
            f"{one.median_ms:.1f}",
            f"{one.p95_ms:.1f}",
            f"{one.cpu_ms:.1f}",
            f"{one.median_ms / plain.median_ms:.0f}",
            f"{one.kilobytes:.0f}",
        )
        for one in found
    ]


def main() -> None:
    parser = parser_of("console", "Measures the console's pages where there is much to show.")
    parser.add_argument("--events", type=int, default=1_000_000, help="three times as many sagas, four times the jobs")
    parser.add_argument("--times", type=int, default=40, help="how often each page is asked for")
    options = parser.parse_args()
    figures: dict[str, list[dict[str, Any]]] = {}
    missed: dict[str, float] = {}
    for engine in engines(options.engine):
        found = uvloop.run(run(engine, options.events, options.times))
        out.print(table(f"{engine}, {options.events:,} events: server time of each page", HEADINGS, rows(found)))
        figures[engine] = [asdict(one) for one in found]
        missed |= {f"{engine} {page}": took for page, took in slow(found, BAR_MS).items()}
    write_json(options.json, figures)
    if missed:
        sys.exit("\n".join(f"{page}: {took:.0f} ms; the bar is {BAR_MS:.0f} ms" for page, took in missed.items()))


if __name__ == "__main__":
    main()
