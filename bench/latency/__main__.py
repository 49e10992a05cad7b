"""Measures how soon an idle system reacts: `python -m bench.latency [--events N] [--engine …]`.

An event is published when nothing has happened for a while, at moments that no pause of a role is in step with.
Measured is the time from its commit (of the API: from its answer) to its request at the endpoint. `up` is one process
for all roles, `separate` one for each; the database, and who publishes, are processes of their own, on this machine.
"""

import asyncio
import random
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass

import uvloop
from rich.console import Console
from rich.table import Table

from bench.engines import engines, parser_of, write_json
from bench.latency.publishers import Publish, by_api, by_transaction
from bench.standing import Arrivals, endpoint, prepare, running
from tests.support.database import SERVERS, Database

ROLES = ("api", "router", "orchestrator", "worker", "cleaner")
LAYOUTS = {"up": [ROLES], "separate": [(role,) for role in ROLES]}
PUBLISHERS: dict[str, Callable[[Database], AbstractAsyncContextManager[Publish]]] = {
    "api": by_api,
    "transaction": by_transaction,
}
# Longer than roles stay alert after work, plus some part of the longest pause between their looks.
SECONDS_IDLE, SECONDS_MORE = 2.3, 0.6
_WARM = 3

out = Console(highlight=False, soft_wrap=True, width=120)


@dataclass(frozen=True)
class Case:
    """`p50` and `p99` are the bars, in milliseconds."""

    engine: str
    publisher: str
    layout: str
    p50: int
    p99: int


@dataclass(frozen=True)
class Found:
    case: Case
    milliseconds: list[float]

    def quantile(self, part: float) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, round(part * len(ordered)))]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def is_within(self) -> bool:
        return self.median <= self.case.p50 and self.quantile(0.99) <= self.case.p99


CASES = (
    Case("postgresql", "api", "up", 15, 60),
    Case("postgresql", "api", "separate", 15, 60),
    Case("postgresql", "transaction", "up", 50, 120),
    Case("postgresql", "transaction", "separate", 50, 120),
    Case("mariadb", "transaction", "up", 50, 150),
    Case("mariadb", "transaction", "separate", 400, 1200),
)


async def measure(engine: str, events: int, chosen: Sequence[Case]) -> list[Found]:
    with SERVERS[engine]() as server:
        database = Database(server)
        await database.migrate()
        return [await measure_case(database, case, events) for case in chosen]


async def measure_case(database: Database, case: Case, events: int) -> Found:
    async with endpoint() as (port, arrivals):
        await prepare(database, port)
        try:
            async with (
                running(database, LAYOUTS[case.layout]),
                PUBLISHERS[case.publisher](database) as publish,
            ):
                for _ in range(_WARM):
                    await one(publish, arrivals)
                return Found(case, [await one(publish, arrivals) for _ in range(events)])
        finally:
            await database.close()
            await database.empty()


async def one(publish: Publish, arrivals: Arrivals) -> float:
    await asyncio.sleep(SECONDS_IDLE + random.uniform(0, SECONDS_MORE))
    committed = await publish()
    return round((await asyncio.wait_for(arrivals.get(), 30) - committed) * 1000, 2)


def table(found: Sequence[Found]) -> Table:
    shown = Table(title="From a commit to the request, when idle (ms)", title_justify="left")
    for heading in ("engine", "published by", "roles", "p50", "bar", "p99", "bar", "worst", "events", ""):
        shown.add_column(heading, justify="right" if heading in ("p50", "bar", "p99", "worst", "events") else "left")
    for one in found:
        case = one.case
        figures = (f"{one.median:.1f}", str(case.p50), f"{one.quantile(0.99):.1f}", str(case.p99))
        rest = (f"{max(one.milliseconds):.1f}", str(len(one.milliseconds)), "" if one.is_within else "missed")
        shown.add_row(case.engine, case.publisher, case.layout, *figures, *rest)
    return shown


def main() -> None:
    parser = parser_of("latency", "Measures how soon an idle system reacts.")
    parser.add_argument("--events", type=int, default=100, help="in each case; each takes about three seconds")
    parser.add_argument("--layout", choices=[*LAYOUTS], help="only this one")
    parser.add_argument("--publisher", choices=[*PUBLISHERS], help="only this one")
    options = parser.parse_args()
    found: list[Found] = []
    for engine in engines(options.engine):
        chosen = [
            case
            for case in CASES
            if case.engine == engine
            and options.layout in (None, case.layout)
            and options.publisher in (None, case.publisher)
        ]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found += runner.run(measure(engine, options.events, chosen))
    out.print(table(found))
    write_json(options.json, [asdict(one) | {"p50": one.median, "p99": one.quantile(0.99)} for one in found])


if __name__ == "__main__":
    main()
