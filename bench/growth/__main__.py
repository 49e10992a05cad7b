"""Measures whether steps grow dearer: `python -m bench.growth [--sizes 1000,…] [--subscriptions 1,100,10000]`.

Two installations on one server take their steps in turn, one with a short backlog that stays short, one whose backlog
grows from size to size; so whatever else the machine does meets both alike, and the ratio is theirs. Each step has the
same work, a batch. A cost is the lower quartile of its rounds; rows and pages are the server's own count of one step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import uvloop

from bench.engines import conclude, engines, parser_of
from bench.growth.course import BATCH, STEPS, Cost, Course
from bench.quantiles import lower_quartile
from bench.servers import measured_server
from bench.showing import out, say, table
from bench.targets import GROWTH, Verdict, judge
from tests.plans.counters import Reads
from tests.support.database import Database
from tidings.db.names import Names

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SUBSCRIPTIONS = (1, 100, 10_000)
NAMES = ("shortbacklog", "longbacklog")
WARM_UP = 5
HEADINGS = ("subscriptions", "backlog", "step", "ms", "CPU ms", "rows", "pages", "time ×", "CPU ×")


@dataclass(frozen=True)
class Line:
    """One step at one size; the factors are against the short backlog in the same seconds."""

    subscriptions: int
    size: int
    step: str
    wall_ms: float
    cpu_ms: float
    rows: int
    pages: int
    wall_ratio: float
    cpu_ratio: float

    @property
    def ratio(self) -> float:
        return max(self.wall_ratio, self.cpu_ratio)


async def measure(engine: str, subscriptions: int, sizes: Sequence[int], rounds: int) -> list[Line]:
    with measured_server(engine) as server:
        short, long = [await laid(Database(server, Names(name, name)), subscriptions) for name in NAMES]
        await short.grow(sizes[0])
        found: list[Line] = []
        for size in sizes:
            say(f"{engine}, {subscriptions:,} subscriptions: filling up to {size:,}")
            await long.grow(size)
            await repeat(WARM_UP, short, long)
            short.costs.clear()
            long.costs.clear()
            await repeat(rounds, short, long)
            for course in (short, long):
                await course.disconnect()
            found += lines(short, long, await long.reads())
            for course in (short, long):
                await course.connect()
        for course in (short, long):
            await course.close()
    return found


async def laid(database: Database, subscriptions: int) -> Course:
    await database.migrate()
    return await Course.laid(database, subscriptions)


async def repeat(rounds: int, short: Course, long: Course) -> None:
    for number in range(rounds):
        for course in (short, long) if number % 2 else (long, short):
            await course.round()


def lines(short: Course, long: Course, reads: Mapping[str, Reads]) -> list[Line]:
    found = []
    for step in STEPS:
        before, after = _typical(short.costs[step]), _typical(long.costs[step])
        found.append(
            Line(
                long.subscriptions,
                long.size,
                step,
                round(after.wall * 1000, 3),
                round(after.cpu * 1000, 3),
                reads[step].rows,
                reads[step].pages,
                after.wall / before.wall,
                after.cpu / before.cpu,
            )
        )
    return found


def _typical(costs: Sequence[Cost]) -> Cost:
    return Cost(lower_quartile(one.wall for one in costs), lower_quartile(one.cpu for one in costs))


def row(one: Line) -> Sequence[str]:
    return (
        f"{one.subscriptions:,}",
        f"{one.size:,}",
        one.step,
        f"{one.wall_ms:.2f}",
        f"{one.cpu_ms:.2f}",
        f"{one.rows:,}",
        f"{one.pages:,}",
        f"{one.wall_ratio:.2f}",
        f"{one.cpu_ratio:.2f}",
    )


def verdicts(engine: str, found: Sequence[Line]) -> list[Verdict]:
    """Of the longest backlog: each step with each number of subscriptions, by time or CPU, whichever grew more."""
    longest = max(one.size for one in found)
    return [
        verdict
        for one in found
        if one.size == longest
        for verdict in judge(f"{engine}, {one.step}, {one.subscriptions:,}", [(GROWTH, one.ratio)])
    ]


def main() -> None:
    parser = parser_of("growth", "Measures whether steps grow dearer with the backlog.")
    parser.add_argument("--sizes", type=numbers, default=SIZES, help="of the backlog, ascending, with commas between")
    parser.add_argument("--subscriptions", type=numbers, default=SUBSCRIPTIONS, help="how many there are")
    parser.add_argument("--rounds", type=int, default=40, help="in which each step is taken once")
    options = parser.parse_args()
    figures: dict[str, Any] = {}
    judged: list[Verdict] = []
    for engine in engines(options.engine):
        found = []
        for subscriptions in options.subscriptions:
            found += uvloop.run(measure(engine, subscriptions, options.sizes, options.rounds))
        title = f"{engine}: one step of {BATCH}, beside the same with a backlog of {options.sizes[0]:,}"
        out.print(table(title, HEADINGS, map(row, found), texts=3))
        judged += verdicts(engine, found)
        figures[engine] = [asdict(one) for one in found]
    conclude(options.json, figures, judged)


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number.replace("_", "")) for number in text.split(","))


if __name__ == "__main__":
    main()
