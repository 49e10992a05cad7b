"""Measures what sending costs: `python -m bench.courier [--seconds N] [--connections N] [--sink nginx|python]`.

Both clients send the same signed webhooks of 1 KiB in short turns, so that whatever else the machine does meets them
alike. Of each, the best turn counts. Exits 1 when ours costs more than 1/2.5 of the other's CPU.
"""

import asyncio
import sys
import time
import timeit
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import uvloop

from bench.bare_client import signed_headers
from bench.courier.senders import BODY, SENDERS, Send
from bench.courier.sink import Sink, running
from bench.engines import parser_of, write_json
from bench.showing import out, table
from bench.usage import MICROSECONDS

TURNS = 5
WARM_UP = 0.2
BAR = 2.5
HEADINGS = ("", "client", "requests/s", "CPU µs/request", "times aiohttp (CPU)")


class Cost(NamedTuple):
    per_second: float
    cpu: float
    """Microseconds of this process for each request."""


async def turn(send: Send, connections: int, seconds: float) -> Cost:
    count = 0
    began, cpu = time.perf_counter(), time.process_time()
    end = began + seconds

    async def keep_sending() -> None:
        nonlocal count
        while time.perf_counter() < end:
            status = await send(count)
            assert status == 200, status
            count += 1

    await asyncio.gather(*[keep_sending() for _ in range(connections)])
    return Cost(count / (time.perf_counter() - began), (time.process_time() - cpu) / count * MICROSECONDS)


async def measure(sink: Sink, url: str, connections: int, seconds: float) -> dict[str, Cost]:
    turns: dict[str, list[Cost]] = {name: [] for name in SENDERS}
    for _ in range(TURNS):
        for name, sender in SENDERS.items():
            async with sender(url, sink.trusted, connections) as send:
                await turn(send, connections, WARM_UP)
                turns[name].append(await turn(send, connections, seconds / TURNS))
    return {
        name: Cost(max(cost.per_second for cost in costs), min(cost.cpu for cost in costs))
        for name, costs in turns.items()
    }


def rows(costs: Mapping[str, Mapping[str, Cost]]) -> list[Sequence[str]]:
    return [
        (scheme, name, f"{cost.per_second:,.0f}", f"{cost.cpu:.0f}", f"{by_client['aiohttp'].cpu / cost.cpu:.1f}")
        for scheme, by_client in costs.items()
        for name, cost in by_client.items()
    ]


def signing_costs() -> float:
    """Microseconds for each request."""
    repeats = 2_000
    return min(timeit.repeat(lambda: signed_headers(1, BODY), number=repeats, repeat=20)) / repeats * MICROSECONDS


def main() -> None:
    parser = parser_of("courier", "Measures what sending costs, beside aiohttp.", of_engines=False)
    parser.add_argument("--seconds", type=float, default=5, help="for each client and scheme")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--sink", choices=("auto", "nginx", "python"), default="auto")
    options = parser.parse_args()
    with running(options.sink) as sink:
        costs = {
            scheme: uvloop.run(measure(sink, sink.url(scheme), options.connections, options.seconds))
            for scheme in ("http", "https")
        }
    title = f"POST of 1 KiB, signed, {options.connections} connections, to {sink.name}, uvloop"
    out.print(table(title, HEADINGS, rows(costs), texts=2))
    out.print(f"Signing, not counted above: {signing_costs():.1f} µs for each request.")
    write_json(
        options.json, {scheme: {name: cost._asdict() for name, cost in of.items()} for scheme, of in costs.items()}
    )
    sys.exit(0 if all(found["aiohttp"].cpu / found["ours"].cpu >= BAR for found in costs.values()) else 1)


if __name__ == "__main__":
    main()
