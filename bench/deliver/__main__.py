"""Measures the whole way: `python -m bench.deliver [--deliveries N] [--engine …] [--fan-out N] [--scheme …] …`.

Events are accepted; from the moment at which the gates open, or with ingest from the first request to our API, a
process for each role routes, starts, sends to a sink in another process, reports and completes them. Everything shares
this machine, the database too, which commits as durably as in production. Beside each case stands the limit
(`limit.py`), measured in the same minute. Without options: fan-out 1, 3 and 10, TLS, with ingest, and with aiohttp.
"""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import uvloop

from bench.courier.sink import Sink
from bench.courier.sink import running as sink_running
from bench.deliver.limit import Limit, find_limit
from bench.deliver.run import AIOHTTP, ONE, OURS, SEPARATE, STUB, Case, Result, deliver
from bench.deliver.statements import dearest
from bench.engines import conclude, engines, parser_of
from bench.servers import STATEMENTS, measured_server
from bench.showing import OF, out, part, say, table
from bench.targets import DELIVER, Target, Verdict, judge
from tests.support.database import Database

HEADINGS = ("case", "deliveries", "seconds", "/s", "limit /s", "share", "log bytes", "commits", "first after")
FAN_OUT = 3
"""Of what is judged, and unless another one is asked for."""
USUAL = (
    Case(1),
    Case(FAN_OUT),
    Case(FAN_OUT, sender=AIOHTTP),
    Case(FAN_OUT, ingest=True),
    Case(FAN_OUT, "https"),
    Case(10),
)
Limits = dict[tuple[str, int], Limit]
Rates = dict[tuple[str, str, bool], float]
PLAIN, WITH_INGEST, WITH_AIOHTTP = ("http", OURS, False), ("http", OURS, True), ("http", AIOHTTP, False)


def chosen(options: argparse.Namespace) -> list[Case]:
    """What was asked for in every combination; all usual cases if nothing was."""
    asked = (options.fan_out, options.scheme, options.sender)
    if not any(asked) and options.ingest is None and options.workers == 1 and options.layout == SEPARATE:
        return [*USUAL]
    fan_outs, schemes, senders = options.fan_out or [FAN_OUT], options.scheme or ["http"], options.sender or [OURS]
    ingest = [False] if options.ingest is None else [options.ingest]
    return [
        Case(fan_out, scheme, sender, with_ingest, options.layout, options.workers)
        for fan_out, scheme, sender, with_ingest in product(fan_outs, schemes, senders, ingest)
    ]


async def measure(engine: str, cases: Sequence[Case], options: argparse.Namespace) -> tuple[list[Result], Limits]:
    limits: Limits = {}
    results = []
    more = STATEMENTS if options.statements and engine == "postgresql" else ()
    with measured_server(engine, more) as server, sink_running("auto") as sink:
        database = Database(server)
        await database.migrate()
        for case in cases:
            kind = (case.scheme, case.fan_out)
            if options.limit and kind not in limits:
                say(f"{engine}: the limit of fan-out {case.fan_out} by {case.scheme}")
                limits[kind] = await find_limit(database, sink, case.scheme, case.fan_out, options.deliveries)
            say(f"{engine}: {case.name}")
            results.append(await one_case(database, sink, case, options))
    return results, limits


async def one_case(database: Database, sink: Sink, case: Case, options: argparse.Namespace) -> Result:
    asks = options.statements and database.family == "postgresql"
    async with dearest(database, case.name) if asks else nullcontext():
        return await deliver(database, sink, case, options.deliveries, options.seconds, profiles=options.profile)


def row(one: Result, limits: Limits) -> Sequence[str]:
    limit = limits.get((one.scheme, one.fan_out))
    incomplete = "" if one.completed == one.deliveries else f" of {one.deliveries:,}"
    return (
        one.name,
        f"{one.completed:,}{incomplete}",
        f"{one.seconds:.1f}",
        f"{one.rate:,.0f}",
        f"{limit.rate:,.0f}" if limit else "",
        part(one.rate / limit.rate if limit else None),
        f"{one.log_bytes:,.0f}",
        f"{one.commits:.3f}",
        f"{one.first:.2f} s",
    )


def show(engine: str, results: Sequence[Result], limits: Limits) -> None:
    out.print(
        table(f"{engine}: from accepted events to completed sagas", HEADINGS, [row(one, limits) for one in results])
    )
    rows = [(one.name, *_cells(one.cpu)) for one in results]
    rows += [(f"limit: fan-out {fan_out}, {scheme}", *_cells(one.cpu)) for (scheme, fan_out), one in limits.items()]
    out.print(table(f"{engine}: CPU µs for each delivery, by process", ("case", "in all", OF), rows))
    for (scheme, fan_out), one in limits.items():
        out.print(
            f"Limit of fan-out {fan_out} by {scheme}: {one.rate:,.0f} /s,"
            f" in batches of {one.batch:,} by {one.sessions} sessions"
            f" (the SQL beside the client {one.sql_rate:,.0f} /s, the client beside the SQL {one.client_rate:,.0f} /s)."
        )


def _cells(cpu: Mapping[str, float]) -> tuple[str, str]:
    return f"{sum(cpu.values()):.0f}", ", ".join(f"{name} {one:.0f}" for name, one in cpu.items())


def rates_of(results: Sequence[Result]) -> Rates:
    """Those that are judged, by scheme, sender and whether there was ingest."""
    return {(one.scheme, one.sender, one.ingest): one.rate for one in results if one.fan_out == FAN_OUT}


def verdicts(engine: str, rates: Rates, limits: Limits, rates_before: Rates) -> list[Verdict]:
    """As far as it was measured; MariaDB comes after PostgreSQL, whose rates are those before."""
    found: list[tuple[Target, float]] = []
    for scheme in ("http", "https"):
        limit = limits.get((scheme, FAN_OUT))
        if limit and (scheme, OURS, False) in rates:
            found.append((DELIVER[scheme], rates[scheme, OURS, False] / limit.rate))
    if PLAIN in rates and WITH_INGEST in rates:
        found.append((DELIVER["ingest"], rates[WITH_INGEST] / rates[PLAIN]))
    if PLAIN in rates and WITH_AIOHTTP in rates:
        found.append((DELIVER["aiohttp"], rates[PLAIN] / rates[WITH_AIOHTTP]))
    if PLAIN in rates and PLAIN in rates_before:
        found.append((DELIVER["mariadb"], rates[PLAIN] / rates_before[PLAIN]))
    return judge(engine, found)


def figures(results: Sequence[Result], limits: Limits) -> Mapping[str, Any]:
    return {
        "cases": [asdict(one) | {"name": one.name, "rate": one.rate} for one in results],
        "limits": [asdict(one) | {"scheme": scheme, "fan_out": n} for (scheme, n), one in limits.items()],
    }


def main() -> None:
    parser = parser_of("deliver", "Measures whole deliveries.")
    parser.add_argument("--deliveries", type=int, default=30_000, help="in each case, and for its limit")
    parser.add_argument("--seconds", type=float, default=120, help="for each case, at most")
    parser.add_argument("--fan-out", type=int, action="append", help="subscriptions that get every event")
    parser.add_argument("--scheme", choices=("http", "https"), action="append")
    parser.add_argument("--sender", choices=(OURS, AIOHTTP, STUB), action="append", help="what sends the requests")
    parser.add_argument("--ingest", action=argparse.BooleanOptionalAction, help="publish while others are delivered")
    parser.add_argument("--layout", choices=(SEPARATE, ONE), default=SEPARATE, help="a process for each role, or one")
    parser.add_argument("--workers", type=int, default=1, help="processes of the worker")
    parser.add_argument("--limit", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--statements", action="store_true", help="PostgreSQL: show which statements took how long")
    parser.add_argument("--profile", type=Path, metavar="FOLDER", help="where each process puts what cProfile sees")
    options = parser.parse_args()
    found: dict[str, Any] = {}
    judged: list[Verdict] = []
    rates: Rates = {}
    for engine in engines(options.engine):
        results, limits = uvloop.run(measure(engine, chosen(options), options))
        show(engine, results, limits)
        rates_before, rates = rates, rates_of(results)
        judged += verdicts(engine, rates, limits, rates_before)
        found[engine] = figures(results, limits)
    conclude(options.json, found, judged)


if __name__ == "__main__":
    main()
