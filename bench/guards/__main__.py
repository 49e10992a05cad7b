"""Measures what the guards cost: `python -m bench.guards [--rounds N] [--engine …] [--json FILE]`.

Installations with and without guards do the same deliveries in turn on one private server, so that whatever else the
machine does meets them alike. Exits 1 when the guards cost more than they may.
"""

import asyncio
import sys
from collections.abc import Sequence
from itertools import cycle, permutations, zip_longest

from rich.progress import track

from bench.engines import engines, parser_of, write_json
from bench.guards.delivery import BATCH, Delivery
from bench.guards.installing import VARIANTS, installed
from bench.guards.reporting import HEADINGS, Costs, keeps_its_bar, lines, row, verdict
from bench.showing import out, table
from tests.support.database import SERVERS

WARM_UP = 10


async def deliver(engine: str, rounds: int) -> dict[str, Costs]:
    """What each statement cost in each round, by variant."""
    with SERVERS[engine]() as server:
        databases = {variant: await installed(server, variant) for variant in VARIANTS[engine]}
        deliveries = {
            variant: await Delivery(database, publishes_only=variant == "unmarked").open()
            for variant, database in databases.items()
        }
        await repeat(WARM_UP, list(deliveries.values()), f"{engine}, warming up")
        for delivery in deliveries.values():
            delivery.meter.costs.clear()
        await repeat(rounds, list(deliveries.values()), f"{engine}, measuring")
        for database in databases.values():
            await database.close()
    return {variant: delivery.meter.costs for variant, delivery in deliveries.items()}


async def repeat(rounds: int, deliveries: Sequence[Delivery], what: str) -> None:
    """Each stage is done by all before the next one is, in an order that changes with each round: AB, BA, AB, …"""
    orders = cycle(permutations(deliveries))
    for _ in track(range(rounds), what, console=out, transient=True, disable=not out.is_terminal):
        for stages in zip_longest(*(delivery.stages for delivery in next(orders))):
            for stage in filter(None, stages):
                await stage()


def main() -> None:
    parser = parser_of("guards", "Measures what the guards cost.")
    parser.add_argument("--rounds", type=int, default=60, help=f"batches of {BATCH} for each variant")
    options = parser.parse_args()
    found = {}
    for engine in engines(options.engine):
        found[engine] = lines(asyncio.run(deliver(engine, options.rounds)))
        title = f"{engine}: µs for each row, {options.rounds} batches of {BATCH}"
        out.print(table(title, HEADINGS, map(row, found[engine])))
        out.print(verdict(engine, found[engine]))
    figures = {engine: {line.name: line.figures for line in measured} for engine, measured in found.items()}
    write_json(options.json, figures)
    sys.exit(0 if all(keeps_its_bar(engine, measured) for engine, measured in found.items()) else 1)


if __name__ == "__main__":
    main()
