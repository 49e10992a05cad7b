"""Measures what sending costs: `python -m bench.courier [--seconds N] [--connections N] [--sink nginx|python]`.

Both clients send the same signed webhooks of 1 KiB in short turns, so that whatever else the machine does meets them
alike. Of each, the best turn counts. Exits 1 when ours costs more than 1/2.5 of the other's CPU.
"""

import argparse
import asyncio
import sys
import time
import timeit
from pathlib import Path
from typing import NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from bench.courier.senders import SENDERS, Send, signed_headers
from bench.courier.sink import Sink, running
from bench.engines import write_json

TURNS = 5
WARM_UP = 0.2
BAR = 2.5

out = Console(highlight=False, soft_wrap=True)


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
    return Cost(count / (time.perf_counter() - began), (time.process_time() - cpu) / count * 1e6)


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


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.courier")
    parser.add_argument("--seconds", type=float, default=5, help="for each client and scheme")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--sink", choices=("auto", "nginx", "python"), default="auto")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file too")
    chosen = parser.parse_args()
    with running(chosen.sink) as sink:
        costs = {
            scheme: uvloop.run(measure(sink, url, chosen.connections, chosen.seconds))
            for scheme, url in (("http", sink.http), ("https", sink.https))
        }
    table = Table(title=f"POST of 1 KiB, signed, {chosen.connections} connections, to {sink.name}, uvloop")
    for column in ("", "client", "requests/s", "CPU µs/request", "times aiohttp (CPU)"):
        table.add_column(column, justify="left" if column in ("", "client") else "right")
    for scheme, by_client in costs.items():
        for name, cost in by_client.items():
            times = by_client["aiohttp"].cpu / cost.cpu
            table.add_row(scheme, name, f"{cost.per_second:,.0f}", f"{cost.cpu:.0f}", f"{times:.1f}")
    out.print(table)
    write_json(
        chosen.json, {scheme: {name: cost._asdict() for name, cost in of.items()} for scheme, of in costs.items()}
    )
    signing = min(timeit.repeat(lambda: signed_headers(1), number=2000, repeat=20)) / 2000 * 1e6
    out.print(f"Signing, not counted above: {signing:.1f} µs for each request.")
    return 0 if all(found["aiohttp"].cpu / found["ours"].cpu >= BAR for found in costs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
