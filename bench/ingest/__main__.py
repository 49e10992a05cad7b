"""Measures how many events a second are taken in: `python -m bench.ingest [--seconds N] [--events N] [--engine …]`.

First our HTTP API beside the least that could take its place, in turns. Then, in this process, the service behind the
API and transactions of an application's own. On servers that commit as durably as in production; all share the machine.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict

import uvloop

from bench.engines import conclude, engines, parser_of
from bench.ingest.cases import CASES, Case, Turn
from bench.ingest.over_http import Compared, compare
from bench.quantiles import quantile
from bench.servers import measured_server
from bench.showing import out, say, table
from bench.targets import INGEST, Verdict, judge
from tests.support.database import Database

WARM_UP = 1.0
IN_PROCESS = ("engine", "case", "events/s", "p50 ms", "p99 ms")
OVER_HTTP = ("engine", "by HTTP", "ours /s", "bare /s", "share")


async def measure(engine: str, seconds: float, events: int) -> tuple[dict[str, dict[str, float]], list[Compared]]:
    with measured_server(engine) as server:
        database = Database(server)
        await database.migrate()
        say(f"{engine}: by HTTP")
        compared = await compare(database, events)
        say(f"{engine}: in this process")
        figures = {case.name: await measure_case(case, database, seconds) for case in CASES}
        await database.close()
    return figures, compared


async def measure_case(case: Case, database: Database, seconds: float) -> dict[str, float]:
    async with case.open(database, case.clients) as turns:
        await repeat(turns, min(WARM_UP, seconds))
        started = time.perf_counter()
        took = await repeat(turns, seconds)
        spent = time.perf_counter() - started
    return {
        "events_per_second": round(len(took) * case.events_a_turn / spent, 1),
        "p50_ms": round(quantile(took, 0.5) * 1000, 2),
        "p99_ms": round(quantile(took, 0.99) * 1000, 2),
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


def rows_of_http(found: dict[str, list[Compared]]) -> list[Sequence[str]]:
    return [
        (engine, one.what, f"{one.ours:,.0f}", f"{one.bare:,.0f}", f"{one.ratio:.2f}")
        for engine, compared in found.items()
        for one in compared
    ]


def rows_of_cases(found: dict[str, dict[str, dict[str, float]]]) -> list[Sequence[str]]:
    return [
        (engine, case, f"{figure['events_per_second']:,.0f}", *map(str, [*figure.values()][1:]))
        for engine, figures in found.items()
        for case, figure in figures.items()
    ]


def main() -> None:
    parser = parser_of("ingest", "Measures how fast events are taken in.")
    parser.add_argument("--seconds", type=float, default=10, help="for each case in this process")
    parser.add_argument("--events", type=int, default=20_000, help="in each turn by HTTP")
    options = parser.parse_args()
    cases: dict[str, dict[str, dict[str, float]]] = {}
    compared: dict[str, list[Compared]] = {}
    judged: list[Verdict] = []
    for engine in engines(options.engine):
        cases[engine], compared[engine] = uvloop.run(measure(engine, options.seconds, options.events))
        judged += judge(engine, [(INGEST[one.what], one.ratio) for one in compared[engine]])
    out.print(
        table("Ingest of 1 KB events by HTTP, beside the least that could do it", OVER_HTTP, rows_of_http(compared), 2)
    )
    out.print(table(f"Ingest in this process, {options.seconds:g} s each", IN_PROCESS, rows_of_cases(cases), 2))
    figures = {
        engine: {
            "in_process": cases[engine],
            "by_http": [asdict(one) | {"ratio": one.ratio} for one in compared[engine]],
        }
        for engine in cases
    }
    conclude(options.json, figures, judged)


if __name__ == "__main__":
    main()
