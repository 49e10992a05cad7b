"""Measures what a forgotten transaction costs: `python -m bench.bloat [--count N] [--engine …] [--json FILE]`.

A transaction that is older than the run stays open, so that the server may remove nothing of what has changed since.
Deliveries go their whole way in processes of the product, with HTTP stubbed out; tasks are drained by one worker. The
rate near the beginning is compared with that near the end; beside it the same without such a transaction.
"""

import argparse
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from bench.backlog import filling
from bench.courier.sink import running as sink_running
from bench.deliver.run import STUB, Case, deliver
from bench.engines import conclude, engines, parser_of
from bench.servers import measured_server
from bench.showing import out, say, table
from bench.targets import BLOAT, Verdict, judge
from bench.tasks.ours import drained
from tests.support.database import Database

FIRST, LAST = (0.05, 0.2), (0.8, 0.95)
"""Which parts of all are compared: neither the start nor what is left at the end."""
JOBS, TASKS = "jobs", "tasks"
HEADINGS = ("what", "transaction", "count", "seconds", "/s", "first /s", "last /s", "last / first")

Moments = Sequence[tuple[float, int]]


@dataclass(frozen=True)
class Result:
    what: str
    held: bool
    count: int
    seconds: float
    first: float
    last: float

    @property
    def ratio(self) -> float:
        return self.last / self.first


def result(what: str, held: bool, count: int, moments: Moments) -> Result:
    first, last = (rate_between(moments, count * start, count * end) for start, end in (FIRST, LAST))
    return Result(what, held, moments[-1][1], moments[-1][0], first, last)


def rate_between(moments: Moments, start: float, end: float) -> float:
    """From the moment at which `start` were done to that at which `end` were."""
    (began, at_first), *_ = [one for one in moments if one[1] >= start] or [moments[-1]]
    (ended, at_last), *_ = [one for one in moments if one[1] >= end] or [moments[-1]]
    return (at_last - at_first) / (ended - began) if ended > began else float("nan")


async def measure(engine: str, count: int, options: argparse.Namespace) -> list[Result]:
    found = []
    with measured_server(engine) as server, sink_running("auto") as sink:
        database = Database(server)
        await database.migrate()
        for held in (False, True):
            word = "with a transaction held open" if held else "without"
            if JOBS in options.what:
                say(f"{engine}: {count:,} jobs {word}")
                done = await deliver(database, sink, Case(1, sender=STUB), count, options.seconds, held=held)
                found.append(result(JOBS, held, done.deliveries, done.moments))
            if TASKS in options.what:
                say(f"{engine}: {count:,} tasks {word}")
                found.append(result(TASKS, held, count, await drain(database, count, held)))
    return found


async def drain(database: Database, count: int, held: bool) -> Moments:
    async with AsyncExitStack() as stack:
        backlog = await stack.enter_async_context(filling(database))
        stack.push_async_callback(database.empty)
        await backlog.add_tasks(count)
        await backlog.tidy()
        if held:
            await (await stack.enter_async_context(filling(database))).look_back()
        return await drained(database, count)


def row(one: Result) -> Sequence[str]:
    figures = (one.seconds, one.count / one.seconds, one.first, one.last)
    held = "held open" if one.held else "none"
    return (one.what, held, f"{one.count:,}", *(f"{figure:,.0f}" for figure in figures), f"{one.ratio:.2f}")


def main() -> None:
    parser = parser_of("bloat", "Measures what a transaction costs that somebody has left open.")
    parser.add_argument("--count", type=int, default=300_000, help="jobs, and tasks")
    parser.add_argument("--what", choices=(JOBS, TASKS), nargs="+", default=[JOBS, TASKS])
    parser.add_argument("--seconds", type=float, default=900, help="for each case, at most")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    judged: list[Verdict] = []
    for engine in engines(options.engine):
        found = uvloop.run(measure(engine, options.count, options))
        out.print(table(f"{engine}: rates, and an old transaction", HEADINGS, map(row, found), texts=2))
        for one in found:
            judged += judge(f"{engine}, {one.what}", [(BLOAT, one.ratio)]) if one.held else []
        figures[engine] = [asdict(one) | {"ratio": one.ratio} for one in found]
    conclude(options.json, figures, judged)


if __name__ == "__main__":
    main()
