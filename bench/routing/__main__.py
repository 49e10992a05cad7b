"""Measures how fast the router is: `python -m bench.routing [--seconds N] [--engine …] [--json FILE]`.

The same rows are written by bare SQL in the same run, in turn with the router: what is left between the two is what
deciding, checking and the round trips cost.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict

from bench.engines import engines, parser_of, write_json
from bench.routing.race import Result, race
from bench.servers import measured_server
from bench.showing import out, table

SUBSCRIPTIONS = (1, 3, 10)
HEADINGS = (
    *("subscriptions", "passes", "events in one", "routed /s", "sagas /s", "bare SQL /s", "of bare"),
    *("client CPU", "statements", "idle ms", "idle statements"),
)


async def measure(engine: str, seconds: float) -> list[Result]:
    with measured_server(engine) as server:
        return [await race(server, subscriptions, seconds) for subscriptions in SUBSCRIPTIONS]


def row(one: Result) -> Sequence[str]:
    return (
        str(one.subscriptions),
        str(one.passes),
        str(one.events_in_a_pass),
        f"{one.routed:,.0f}",
        f"{one.routed * one.subscriptions:,.0f}",
        f"{one.bare:,.0f}",
        f"{one.ratio:.0%}",
        f"{one.client_share:.0%}",
        str(one.statements),
        f"{one.idle_ms:.1f}",
        str(one.idle_statements),
    )


def main() -> None:
    parser = parser_of("routing", "Measures how fast the router is.")
    parser.add_argument("--seconds", type=float, default=10, help="for each number of subscriptions, at most")
    options = parser.parse_args()
    figures = {}
    for engine in engines(options.engine):
        found = asyncio.run(measure(engine, options.seconds))
        title = f"{engine}: events routed in a second, typical pass"
        out.print(table(title, HEADINGS, map(row, found), texts=0))
        figures[engine] = [asdict(one) | {"ratio": one.ratio} for one in found]
    write_json(options.json, figures)


if __name__ == "__main__":
    main()
