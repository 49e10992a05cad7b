"""One case: accepted events, a process for each role, a sink in another, and the clock until all is completed."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path

from bench.backlog import JOBS, SAGAS, Backlog, filling
from bench.bare_client import EVENTS_AT_ONCE
from bench.courier.sink import Sink
from bench.journal import written
from bench.product import API, PROGRAM, Group, Running, running
from bench.sending import bare_client, finish
from bench.usage import MICROSECONDS, Usage
from tests.support.database import Database
from tests.support.sessions import connect

OURS, AIOHTTP, STUB = "ours", "aiohttp", "stub"
# Which program runs the worker, by who sends.
PROGRAMS = {OURS: PROGRAM, AIOHTTP: "bench.deliver.with_aiohttp", STUB: "bench.deliver.with_stub"}
WORKER, ORCHESTRATOR = "worker", "orchestrator"
ROLES = ("router", ORCHESTRATOR, WORKER, "cleaner")
ONE, SEPARATE = "one", "separate"
DATABASE, SINK, PUBLISHER = "database", "sink", "publisher"
PUBLISHING_CONNECTIONS = 4
SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class Case:
    """`fan_out` subscriptions get every event. With ingest the events come while others are delivered."""

    fan_out: int
    scheme: str = "http"
    sender: str = OURS
    ingest: bool = False
    layout: str = SEPARATE
    workers: int = 1
    orchestrators: int = 1

    @property
    def name(self) -> str:
        words = [f"fan-out {self.fan_out}", self.scheme]
        words += [self.sender] * (self.sender != OURS) + ["with ingest"] * self.ingest
        words += ["in one process"] * (self.layout == ONE) + [f"{self.workers} workers"] * (self.workers > 1)
        words += [f"{self.orchestrators} orchestrators"] * (self.orchestrators > 1)
        return ", ".join(words)


@dataclass(frozen=True)
class Result(Case):
    """Processor time by process in µs for each delivery, and what the database wrote for it.

    `moments` are how many were completed by when.
    """

    _: KW_ONLY
    deliveries: int
    completed: int
    seconds: float
    first: float
    cpu: dict[str, float]
    log_bytes: float
    commits: float
    resets: int
    moments: list[tuple[float, int]]

    @property
    def rate(self) -> float:
        return self.completed / self.seconds


async def deliver(
    database: Database,
    sink: Sink,
    case: Case,
    deliveries: int,
    most_seconds: float,
    *,
    held: bool = False,
    profiles: Path | None = None,
) -> Result:
    """With `held` a transaction that is older than all of it stays open."""
    events = max(1, deliveries // case.fan_out // EVENTS_AT_ONCE) * EVENTS_AT_ONCE
    async with AsyncExitStack() as stack:
        backlog = await stack.enter_async_context(filling(database))
        stack.push_async_callback(database.empty)
        await backlog.subscribe([f"{sink.url(case.scheme)}/{number}" for number in range(case.fan_out)])
        if not case.ingest:
            await backlog.add_events(events)
            await backlog.tidy()
        if held:
            await (await stack.enter_async_context(filling(database))).look_back()
        trusted = str(sink.authority)
        product = await stack.enter_async_context(running(database, groups(case), profiles, SSL_CERT_FILE=trusted))
        return await _timed(database, backlog, sink, case, product, events, most_seconds)


def groups(case: Case) -> list[Group]:
    api = [Group(API, (API,))] if case.ingest else []
    if case.layout == ONE:
        return [Group("roles", ROLES, PROGRAMS[case.sender]), *api]
    several = {WORKER: case.workers, ORCHESTRATOR: case.orchestrators}
    programs = {WORKER: PROGRAMS[case.sender]}
    each = [Group(role, (role,), programs.get(role, PROGRAM), processes=several.get(role, 1)) for role in ROLES]
    return [*each, *api]


async def _timed(
    database: Database, backlog: Backlog, sink: Sink, case: Case, product: Running, events: int, most_seconds: float
) -> Result:
    expected, moments = events * case.fan_out, [(0.0, 0)]
    log = await connect(database.admin_url)
    with _publisher(case, product, events) as publisher:
        ours = {PUBLISHER: publisher.pid} if publisher else {}
        usage = Usage({DATABASE: database.server.pid, SINK: sink.pid, **product.pids, **ours})
        before = await written(log, database.family)
        await backlog.open_gates()
        began = time.perf_counter()
        publishing = asyncio.create_task(asyncio.to_thread(finish, publisher)) if publisher else None
        while moments[-1][1] < expected and moments[-1][0] < most_seconds:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            moments.append((time.perf_counter() - began, await backlog.delivered()))
        cpu = usage.seconds()
        if publishing:
            await publishing
    wrote = (await written(log, database.family)).since(before)
    await log.close()
    completed, seconds = await backlog.count(SAGAS, "status = 'Completed'"), moments[-1][0]
    return Result(
        **asdict(case),
        deliveries=expected,
        completed=completed,
        seconds=seconds,
        first=next((moment for moment, count in moments if count), seconds),
        cpu={name: round(one / max(1, completed) * MICROSECONDS, 1) for name, one in cpu.items()},
        log_bytes=wrote.bytes / max(1, completed),
        commits=wrote.commits / max(1, completed),
        resets=await backlog.count(JOBS, "lease_resets > 0"),
        moments=moments,
    )


@contextmanager
def _publisher(case: Case, product: Running, events: int) -> Iterator[subprocess.Popen[str] | None]:
    """Somebody who publishes all of them by the HTTP API, a hundred in each request."""
    if not case.ingest:
        yield None
        return
    with bare_client("events", product.api, events // EVENTS_AT_ONCE, connections=PUBLISHING_CONNECTIONS) as client:
        yield client
