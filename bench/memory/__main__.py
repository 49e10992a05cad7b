"""Measures the memory of each role: `python -m bench.memory [--backlog N] [--seconds N] [--engine …] [--json FILE]`.

Every role in a process of its own, at work for a while on a backlog: events that wait for the router, sagas that wait
for their start, tasks, deliveries that have ended; the API takes in events. What counts is the most that a process ever
had in memory.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from bench.backlog import filling
from bench.courier.sink import Sink
from bench.courier.sink import running as sink_running
from bench.engines import conclude, engines, parser_of
from bench.product import HANDLERS, Group, Running, running
from bench.sending import bare_client, finish
from bench.servers import measured_server
from bench.showing import out, say, table
from bench.targets import MEMORY, Verdict, judge
from bench.usage import MEGABYTE, peak_memory
from tests.support.database import Database
from tidings.processes import PROCESSES

SUBSCRIPTIONS = 10
REQUESTS = 50


@dataclass(frozen=True)
class Found:
    engine: str
    role: str
    backlog: int
    idle_mb: float
    peak_mb: float


async def measure(engine: str, backlog: int, seconds: float) -> list[Found]:
    with measured_server(engine) as server, sink_running("auto") as sink:
        database = Database(server)
        await database.migrate()
        groups = [Group(role, (role,)) for role in PROCESSES]
        async with running(database, groups, TIDINGS_APP=HANDLERS) as product:
            idle = peaks(product)
        await database.empty()
        await fill(database, sink, engine, backlog)
        async with running(database, groups, TIDINGS_APP=HANDLERS) as product:
            say(f"{engine}: every role at work for {seconds:g} s")
            await work(product, seconds)
            busy = peaks(product)
    return [Found(engine, role, backlog, idle[role], busy[role]) for role in PROCESSES]


async def fill(database: Database, sink: Sink, engine: str, size: int) -> None:
    say(f"{engine}: filling in {size:,} of everything")
    async with filling(database) as backlog:
        await backlog.subscribe([f"{sink.http}/{number}" for number in range(SUBSCRIPTIONS)])
        await backlog.add_events(size)
        await backlog.add_sagas(size, SUBSCRIPTIONS)
        await backlog.add_past(size, SUBSCRIPTIONS)
        await backlog.add_tasks(size)
        await backlog.open_gates()
        await backlog.tidy()


async def work(product: Running, seconds: float) -> None:
    with bare_client("events", product.api, REQUESTS, connections=4) as publisher:
        await asyncio.gather(asyncio.to_thread(finish, publisher), asyncio.sleep(seconds))


def peaks(product: Running) -> dict[str, float]:
    return {role: round(peak_memory(pid) / MEGABYTE, 1) for role, pid in product.pids.items()}


def row(one: Found) -> Sequence[str]:
    return (one.role, f"{one.idle_mb:.0f}", f"{one.peak_mb:.0f}")


def main() -> None:
    parser = parser_of("memory", "Measures how much memory each role takes when much waits.")
    parser.add_argument("--backlog", type=int, default=1_000_000, help="events, sagas and tasks that wait")
    parser.add_argument("--seconds", type=float, default=30, help="how long the roles are at work")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    judged: list[Verdict] = []
    for engine in engines(options.engine):
        found = uvloop.run(measure(engine, options.backlog, options.seconds))
        title = f"{engine}: MB of each role, idle and at work on {options.backlog:,} of everything"
        out.print(table(title, ("role", "idle", "most"), map(row, found)))
        for one in found:
            judged += judge(f"{engine}, {one.role}", [(MEMORY, one.peak_mb)])
        figures[engine] = [asdict(one) for one in found]
    conclude(options.json, figures, judged)
    sys.exit(0 if all(one.is_met for one in judged) else 1)


if __name__ == "__main__":
    main()
