"""Measures how many events a second are taken in: `python -m bench.ingest [--seconds N] [--engine …] [--json FILE]`.

On private servers that commit as durably as in production; client and server share the machine.
"""

import asyncio
import time

import uvloop
from rich.console import Console
from rich.table import Table

from bench.engines import engines, parser_of, write_json
from bench.ingest.cases import CASES, Case, Turn
from tests.support.database import SERVERS, Database

WARM_UP = 1.0

out = Console(highlight=False, soft_wrap=True)


async def measure(engine: str, seconds: float) -> dict[str, dict[str, float]]:
    with SERVERS[engine](durable=True) as server:
        database = Database(server)
        await database.migrate()
        figures = {case.name: await measure_case(case, database, seconds) for case in CASES}
        await database.close()
    return figures


async def measure_case(case: Case, database: Database, seconds: float) -> dict[str, float]:
    async with case.open(database, case.clients) as turns:
        await repeat(turns, WARM_UP)
        started = time.perf_counter()
        took = sorted(await repeat(turns, seconds))
        spent = time.perf_counter() - started
    return {
        "events_per_second": round(len(took) * case.events_a_turn / spent, 1),
        "p50_ms": round(took[len(took) // 2] * 1000, 2),
        "p99_ms": round(took[len(took) * 99 // 100] * 1000, 2),
    }


async def repeat(turns: list[Turn], seconds: float) -> list[float]:
    """How long each turn took, all clients together."""
    end = time.perf_counter() + seconds
    took: list[float] = []

    async def client(turn: Turn) -> None:
        while (started := time.perf_counter()) < end:
            await turn()
            took.append(time.perf_counter() - started)

    await asyncio.gather(*map(client, turns))
    return took


def table(found: dict[str, dict[str, dict[str, float]]], seconds: float) -> Table:
    shown = Table("engine", "case", "events/s", "p50 ms", "p99 ms", title=f"ingest of 1 KB events, {seconds:g} s each")
    for engine, figures in found.items():
        for case, figure in figures.items():
            shown.add_row(engine, case, f"{figure['events_per_second']:,.0f}", *map(str, [*figure.values()][1:]))
    return shown


def main() -> None:
    parser = parser_of("ingest", "Measures how fast events are taken in.")
    parser.add_argument("--seconds", type=float, default=10, help="for each case")
    options = parser.parse_args()

    found = {}
    for engine in engines(options.engine):
        found[engine] = uvloop.run(measure(engine, options.seconds))
    out.print(table(found, options.seconds))
    write_json(options.json, found)


if __name__ == "__main__":
    main()
