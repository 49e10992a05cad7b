"""What a bad endpoint costs the good ones: `python -m bench.noisy [--full] [--engine …]`.

One process each for orchestrator, worker and cleaner, all endpoints in another. Bad endpoints hang until the deadline
of each request and own nine tenths of the backlog. Everything shares this machine, the database too.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bench.engines import engines, parser_of, write_json
from bench.noisy.run import ALONE, CASES, ComeBack, Result, come_back, measure
from bench.servers import measured_server
from bench.showing import out, say, table
from bench.usage import MEGABYTE
from tests.support.database import Database

SECONDS_TO_COME_BACK = 20.0
HEADINGS = ("case", "bad backlog", "requests /s", "p50", "p99", "keep", "p99 ×", "bad requests", "RSS MB")


async def measure_all(engine: str, options: argparse.Namespace) -> tuple[list[Result], ComeBack]:
    size = 1_000_000 if options.full else options.backlog
    with measured_server(engine) as server:
        database = Database(server)
        await database.migrate()
        found = []
        for case in CASES:
            if not options.case or case.name in options.case:
                found.append(await measure(database, case, size * 9 // 10, options.seconds, options.timeout))
                say(f"{engine}: {found[-1]}")
        return found, await come_back(database, size, SECONDS_TO_COME_BACK, options.timeout)


def row(one: Result, alone: Result | None) -> Sequence[str]:
    return (
        one.case,
        f"{one.backlog:,}",
        f"{one.rate:,.0f}",
        f"{one.p50 * 1000:.0f} ms",
        f"{one.p99 * 1000:.0f} ms",
        f"{one.rate / alone.rate:.0%}" if alone else "",
        f"{one.p99 / alone.p99:.2f}" if alone else "",
        f"{one.bad:,} ({one.bad_at_once} at once)",
        " ".join(f"{role} {size // MEGABYTE}" for role, size in one.memory.items()),
    )


def main() -> None:
    parser = parser_of("noisy", "Measures what a bad endpoint costs the good ones.")
    parser.add_argument("--backlog", type=int, default=20_000, help="deliveries, nine tenths of them for bad endpoints")
    parser.add_argument("--full", action="store_true", help="a backlog of a million")
    parser.add_argument("--seconds", type=float, default=8, help="for each figure")
    parser.add_argument("--timeout", type=float, default=3, help="of each request, in seconds")
    names = [case.name for case in CASES]
    parser.add_argument("--case", choices=names, action="append", help="only this one; repeat it for more")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    for engine in engines(options.engine):
        found, back = asyncio.run(measure_all(engine, options))
        by_name = {one.case: one for one in found}
        rows = [row(one, by_name.get(ALONE.get(one.case, ""))) for one in found]
        out.print(table(f"{engine}: good endpoints, alone and in bad company", HEADINGS, rows))
        out.print(
            f"An endpoint that comes back with {back.backlog:,} waiting: 90 % of {back.rate:,.0f} /s after"
            f" {back.seconds:.1f} s, {back.first_second:,} requests in its first second\n"
        )
        figures[engine] = {"cases": [asdict(one) for one in found], "come_back": asdict(back)}
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
