"""Measures how soon a system reacts, idle and at half load: `python -m bench.latency [--events N] [--engine …]`.

An event is published when nothing has happened for a while, at moments that no pause of a role is in step with.
Measured is the time from its commit (of the API: from its answer) to its request at the endpoint. `up` is one process
for all roles, `separate` one for each; the database, and who publishes, are processes of their own, on this machine.
Then (`half_load.py`) the same while half as much comes in as was just delivered at most.
"""

import asyncio
import random
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass

import uvloop

from bench.engines import conclude, engines, parser_of
from bench.latency.half_load import HalfLoad, measure_half_load
from bench.latency.publishers import Publish, by_api, by_transaction
from bench.quantiles import quantile
from bench.servers import measured_server
from bench.showing import out, table
from bench.standing import Arrivals, endpoint, prepare, running
from bench.targets import HALF_LOAD, judge
from tests.support.database import Database

ROLES = ("api", "router", "orchestrator", "worker", "cleaner")
LAYOUTS: dict[str, Sequence[Sequence[str]]] = {"up": [ROLES], "separate": [(role,) for role in ROLES]}
PUBLISHERS: dict[str, Callable[[Database], AbstractAsyncContextManager[Publish]]] = {
    "api": by_api,
    "transaction": by_transaction,
}
# Longer than roles stay alert after work, plus some part of the longest pause between their looks.
SECONDS_IDLE, SECONDS_MORE = 2.3, 0.6
_WARM = 3
IDLE = ("engine", "published by", "roles", "p50", "bar", "p99", "bar", "worst", "events", "")
BUSY = ("engine", "can do /s", "came in /s", "p50", "p99", "worst", "events")


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

    @property
    def p50(self) -> float:
        return statistics.median(self.milliseconds)

    @property
    def p99(self) -> float:
        return quantile(self.milliseconds, 0.99)

    @property
    def is_within(self) -> bool:
        return self.p50 <= self.case.p50 and self.p99 <= self.case.p99


CASES = (
    Case("postgresql", "api", "up", 15, 60),
    Case("postgresql", "api", "separate", 15, 60),
    Case("postgresql", "transaction", "up", 50, 120),
    Case("postgresql", "transaction", "separate", 50, 120),
    Case("mariadb", "transaction", "up", 50, 150),
    Case("mariadb", "transaction", "separate", 400, 1200),
)


async def measure(engine: str, events: int, chosen: Sequence[Case]) -> list[Found]:
    with measured_server(engine) as server:
        database = Database(server)
        await database.migrate()
        return [await measure_case(database, case, events) for case in chosen]


async def measure_busy(engine: str, seconds: float) -> HalfLoad:
    with measured_server(engine) as server:
        database = Database(server)
        await database.migrate()
        return await measure_half_load(database, seconds)


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


def idle_row(one: Found) -> Sequence[str]:
    case = one.case
    figures = (f"{one.p50:.1f}", str(case.p50), f"{one.p99:.1f}", str(case.p99))
    rest = (f"{max(one.milliseconds):.1f}", str(len(one.milliseconds)), "" if one.is_within else "missed")
    return (case.engine, case.publisher, case.layout, *figures, *rest)


def busy_row(one: HalfLoad) -> Sequence[str]:
    figures = (one.most, one.load, one.p50, one.p99, one.worst, one.events)
    return one.engine, *(f"{figure:,.0f}" for figure in figures)


def main() -> None:
    parser = parser_of("latency", "Measures how soon a system reacts, idle and at half load.")
    parser.add_argument("--events", type=int, default=100, help="in each case; each takes about three seconds")
    parser.add_argument("--layout", choices=[*LAYOUTS], help="only this one")
    parser.add_argument("--publisher", choices=[*PUBLISHERS], help="only this one")
    parser.add_argument("--seconds", type=float, default=20, help="at half load; 0 leaves that out")
    options = parser.parse_args()
    found: list[Found] = []
    busy: list[HalfLoad] = []
    for engine in engines(options.engine):
        chosen = [
            case
            for case in CASES
            if case.engine == engine
            and options.layout in (None, case.layout)
            and options.publisher in (None, case.publisher)
        ]
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            found += runner.run(measure(engine, options.events, chosen)) if options.events else []
            busy += [runner.run(measure_busy(engine, options.seconds))] if options.seconds else []
    if found:
        out.print(table("From a commit to the request, when idle (ms)", IDLE, map(idle_row, found), texts=3))
    if busy:
        out.print(table("From a commit to the request, at half load (ms)", BUSY, map(busy_row, busy)))
    judged = [verdict for one in busy for verdict in judge(one.engine, [(HALF_LOAD, one.p99)])]
    idle = [asdict(one) | {"p50": one.p50, "p99": one.p99} for one in found]
    conclude(options.json, {"idle": idle, "half_load": [asdict(one) for one in busy]}, judged)


if __name__ == "__main__":
    main()
