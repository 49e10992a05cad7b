"""A guard against getting slower, in two minutes: `python -m bench.quick [--margin 0.2] [--json FILE]`.

Only ratios that are measured in one run, in small sizes: deliveries beside their limit and beside aiohttp, MariaDB
beside PostgreSQL, a short backlog beside a longer one, ingest beside the least that there could be. Exits 1 where a
target is missed by more than the margin that noise gets.
"""

import argparse
import sys
import time

import uvloop

from bench.courier.sink import running as sink_running
from bench.deliver.limit import find_limit
from bench.deliver.run import AIOHTTP, Case, deliver
from bench.engines import engines, parser_of, write_json
from bench.growth.__main__ import measure as measure_growth
from bench.growth.__main__ import numbers
from bench.ingest.over_http import compare
from bench.servers import measured_server
from bench.showing import out, say
from bench.targets import DELIVER, GROWTH, INGEST, Target, Verdict, as_json, judge
from tests.support.database import Database

FAN_OUT = 3
MARGIN = 0.2
SECONDS = 30.0

Figures = list[tuple[Target, float]]


async def measure(engine: str, options: argparse.Namespace, rate_before: float | None) -> tuple[Figures, float]:
    """And the rate of deliveries, beside which that of the next engine is put."""
    found: Figures = []
    with measured_server(engine) as server, sink_running("auto") as sink:
        database = Database(server)
        await database.migrate()
        say(f"{engine}: deliveries")
        limit = await find_limit(database, sink, "http", FAN_OUT, options.deliveries)
        ours = (await deliver(database, sink, Case(FAN_OUT), options.deliveries, SECONDS)).rate
        found.append((DELIVER["http"], ours / limit.rate))
        if rate_before is None:
            other = (await deliver(database, sink, Case(FAN_OUT, sender=AIOHTTP), options.deliveries, SECONDS)).rate
            found.append((DELIVER["aiohttp"], ours / other))
            say(f"{engine}: ingest")
            found += [(INGEST[one.what], one.ratio) for one in await compare(database, options.events)]
        else:
            found.append((DELIVER["mariadb"], ours / rate_before))
    say(f"{engine}: growth")
    lines = await measure_growth(engine, 100, options.sizes, options.rounds)
    worst = max(line.ratio for line in lines if line.size == options.sizes[-1])
    return [*found, (GROWTH, worst)], ours


def main() -> None:
    parser = parser_of("quick", "Says whether something got slower.")
    parser.add_argument("--margin", type=float, default=MARGIN, help="the part of a bar that noise may take")
    parser.add_argument("--deliveries", type=int, default=9_000)
    parser.add_argument("--events", type=int, default=4_000)
    parser.add_argument("--sizes", type=numbers, default=(1_000, 20_000))
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    began, judged = time.monotonic(), list[Verdict]()
    rate: float | None = None
    for engine in engines(options.engine):
        found, rate = uvloop.run(measure(engine, options, rate))
        judged += judge(engine, found, options.margin)
    for verdict in judged:
        out.print(str(verdict), markup=False)
    out.print(f"{time.monotonic() - began:.0f} s; noise may take {options.margin:.0%} of each bar.")
    write_json(options.json, as_json(judged))
    sys.exit(0 if all(one.is_met for one in judged) else 1)


if __name__ == "__main__":
    main()
