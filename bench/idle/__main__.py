"""Measures what an idle system costs: `python -m bench.idle [--seconds N] [--engine …]`.

First the processor time of each process and of the database server; then, once more, with every process behind a proxy
of its own that counts the statements on the wire, BEGIN and COMMIT among them. `up` is one process for all roles,
`separate` one for each.
"""

import asyncio
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from bench.engines import engines, parser_of, write_json
from bench.servers import measured_server
from bench.showing import out, table
from bench.standing import endpoint, environment, prepare, running
from bench.usage import Usage
from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tidings.processes import PROCESSES

# Without handlers there are no task workers, and the API asks nothing by itself.
ROLES = tuple(name for name in PROCESSES if name not in ("task-worker", "api"))
LAYOUTS: dict[str, Sequence[Sequence[str]]] = {"up": [ROLES], "separate": [(name,) for name in ROLES]}
SERVER = "database"
# Until nobody is alert any more, and what a start brings about has settled.
SECONDS_TO_SETTLE = 8.0
MOST_OF_A_CORE = 0.03
HEADINGS = ("process", "CPU", "statements /s")


@dataclass(frozen=True)
class Cost:
    """`cpu` is the part of one core; the server's statements are those of all."""

    name: str
    cpu: float
    statements: float


@dataclass(frozen=True)
class Found:
    engine: str
    layout: str
    costs: list[Cost]

    @property
    def cpu(self) -> float:
        return sum(one.cpu for one in self.costs)


async def measure(engine: str, seconds: float, layouts: Sequence[str]) -> list[Found]:
    with measured_server(engine) as server:
        database = Database(server)
        await database.migrate()
        async with endpoint() as (port, _):
            await prepare(database, port)
            return [await measure_layout(database, layout, seconds) for layout in layouts]


async def measure_layout(database: Database, layout: str, seconds: float) -> Found:
    groups = LAYOUTS[layout]
    names = [roles[0] if len(roles) == 1 else layout for roles in groups]
    used = await processor_time(database, groups, names, seconds)
    asked = await statements(database, groups, names, seconds)
    costs = [Cost(name, used[name], asked[name]) for name in names]
    return Found(database.kind, layout, [*costs, Cost(SERVER, used[SERVER], sum(asked.values()))])


async def processor_time(
    database: Database, groups: Sequence[Sequence[str]], names: Sequence[str], seconds: float
) -> dict[str, float]:
    async with running(database, groups) as processes:
        pids = dict(zip((*names, SERVER), (*(one.pid for one in processes), database.server.pid), strict=True))
        await asyncio.sleep(SECONDS_TO_SETTLE)
        usage, began = Usage(pids), time.perf_counter()
        await asyncio.sleep(seconds)
        took = time.perf_counter() - began
        return {name: used / took for name, used in usage.seconds().items()}


async def statements(
    database: Database, groups: Sequence[Sequence[str]], names: Sequence[str], seconds: float
) -> dict[str, float]:
    with ExitStack() as ended:
        proxies = [FaultProxy(database.server.port, database.kind).start() for _ in names]
        for proxy in proxies:
            ended.callback(proxy.stop)
        urls = [
            {name: proxy.url(url) for name, url in environment(database).items() if "DATABASE_URL" in name}
            for proxy in proxies
        ]
        async with running(database, groups, urls):
            await asyncio.sleep(SECONDS_TO_SETTLE)
            for proxy in proxies:
                proxy.clear()
            await asyncio.sleep(seconds)
            return {name: len(proxy.seen) / seconds for name, proxy in zip(names, proxies, strict=True)}


def rows(found: Found) -> list[Sequence[str]]:
    each = [(one.name, f"{one.cpu:.2%}", f"{one.statements:.1f}") for one in found.costs]
    missed = "" if found.cpu <= MOST_OF_A_CORE else f"more than {MOST_OF_A_CORE:.0%}"
    return [*each, ("in all", f"{found.cpu:.2%}", missed)]


def main() -> None:
    parser = parser_of("idle", "Measures what an idle system costs.")
    parser.add_argument("--seconds", type=float, default=20, help="how long it is looked at, each time")
    parser.add_argument("--layout", choices=[*LAYOUTS], help="only this one")
    options = parser.parse_args()
    found: list[Found] = []
    for engine in engines(options.engine):
        layouts = [options.layout] if options.layout else [*LAYOUTS]
        found += asyncio.run(measure(engine, options.seconds, layouts))
    for one in found:
        out.print(table(f"{one.engine}, {one.layout}: idle", HEADINGS, rows(one)))
    write_json(options.json, [asdict(one) for one in found])


if __name__ == "__main__":
    main()
