"""How soon a busy system reacts: from commit to request, while half as much comes in as it could deliver."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.backlog import Backlog, filling
from bench.courier.sink import running as sink_running
from bench.deliver.run import Case, deliver, groups
from bench.ports import LOOPBACK
from bench.product import running
from bench.quantiles import quantile
from bench.showing import say
from tests.support.database import Database

CASE = Case(fan_out=1)
DELIVERIES = 20_000
MOST_SECONDS = 60.0
BETWEEN_COMMITS = 0.02
WARM_UP, COOL_DOWN = 3.0, 2.0


@dataclass(frozen=True)
class HalfLoad:
    """Deliveries in a second that it can do, and that came in; milliseconds from commit to request."""

    engine: str
    most: float
    load: float
    p50: float
    p99: float
    worst: float
    events: int


async def measure_half_load(database: Database, seconds: float, deliveries: int = DELIVERIES) -> HalfLoad:
    say(f"{database.kind}: what it can do")
    with sink_running("auto") as sink:
        most = (await deliver(database, sink, CASE, deliveries, MOST_SECONDS)).rate
    say(f"{database.kind}: {seconds:g} s at half of {most:,.0f} /s")
    with _noting() as (port, endpoint):
        async with filling(database) as backlog:
            await backlog.subscribe([f"http://{LOOPBACK}:{port}/good"])
            await backlog.open_gates()
            async with running(database, groups(CASE)):
                await _publish(backlog, most / 2, WARM_UP)
                _report(endpoint)
                published = await _publish(backlog, most / 2, seconds)
                await asyncio.sleep(COOL_DOWN)
                took = [1000 * one for one in _report(endpoint)]
        await database.empty()
    p50, p99 = quantile(took, 0.5), quantile(took, 0.99)
    return HalfLoad(database.kind, most, published / seconds, p50, p99, max(took), len(took))


async def _publish(backlog: Backlog, rate: float, seconds: float) -> int:
    """At this pace, a few in each commit, each saying when that was; how many."""
    began, count = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        some = round(rate * elapsed) - count
        if some > 0:
            values = ", ".join([f"('order.paid', '{{\"at\": {time.time()}}}')"] * some)
            await backlog.run(f"INSERT INTO events (event_type, payload) VALUES {values}")
            count += some
        await asyncio.sleep(BETWEEN_COMMITS)
    return count


@contextmanager
def _noting() -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """An endpoint that notes how old each event is when it comes."""
    command = [sys.executable, "-m", "bench.noisy.sink"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as endpoint:
        assert endpoint.stdout is not None
        try:
            yield int(endpoint.stdout.readline()), endpoint
        finally:
            endpoint.terminate()


def _report(endpoint: subprocess.Popen[str]) -> list[float]:
    assert endpoint.stdin is not None
    assert endpoint.stdout is not None
    endpoint.stdin.write("report\n")
    endpoint.stdin.flush()
    found: list[float] = json.loads(endpoint.stdout.readline())["latencies"]
    return found
