"""One installation with good and bad endpoints, a backlog, and a process for each role."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

from bench.backlog import AT_ONCE, SAGAS
from bench.payload import KEY, SECRET
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.sessions import connect
from tests.support.waiting import eventually
from tidings.flow import OWNER
from tidings.vault import Vault, seal_secret

ROLES = ("orchestrator", "worker", "cleaner")
TRICKLED_AT_ONCE, SECONDS_BETWEEN_TRICKLES = 10, 0.1


@dataclass
class Stage:
    """Subscriptions 1 to `bad` hang, or are paused; those after them answer at once."""

    database: Database
    sink: subprocess.Popen[bytes]
    port: int
    good: int
    bad: int
    timeout: float
    processes: dict[str, psutil.Process] = field(default_factory=dict)
    most_memory: dict[str, int] = field(default_factory=dict)
    generation: int = 0

    async def set(self, paused: bool) -> None:
        vault, words = Vault([KEY]), Words(self.database)
        await self.run("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")
        rows = []
        for number in range(1, self.bad + self.good + 1):
            secret = words.binary(seal_secret(vault, number, SECRET, created_at=0, overlap=0))
            is_bad = number <= self.bad
            where = f"http://{_host(number)}:{self.port}/{'bad' if is_bad else 'good'}"
            rows.append(f"('*', '{where}', true, true, {str(paused and is_bad).lower()}, {self.timeout}, {secret})")
        await self.run(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified, paused, timeout_seconds, secrets)"
            f" VALUES {', '.join(rows)}"
        )

    async def backlog(self, count: int, *, bad: bool) -> None:
        """Deliveries of one event, each a generation of its own, shared out evenly."""
        first, lanes = (1, self.bad) if bad else (self.bad + 1, self.good)
        while count > 0 and lanes:
            some = min(count, AT_ONCE)
            await self.run(
                f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id, generation)"
                f" SELECT 1, {first} + MOD(seq, {lanes}), 'c', {self.generation} + seq"
                f" FROM {Words(self.database).numbers(some)}"
            )
            self.generation += some
            count -= some

    async def trickle(self, seconds: float) -> None:
        """A few new events for good endpoints ten times a second; each says when it was made."""
        ends = time.monotonic() + seconds
        session = await connect(self.database.url(OWNER))
        ((last,),) = await session.run("SELECT MAX(id) FROM events")
        while (began := time.monotonic()) < ends:
            values = ", ".join([f"('a', '{{\"at\": {time.time()}}}')"] * TRICKLED_AT_ONCE)
            await session.run(f"INSERT INTO events (event_type, payload) VALUES {values}")
            await session.run(
                f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id)"
                f" SELECT id, {self.bad + 1} + MOD(id, {self.good}), 'c' FROM events WHERE id > {last}"
            )
            ((last,),) = await session.run("SELECT MAX(id) FROM events")
            await asyncio.sleep(max(0.0, SECONDS_BETWEEN_TRICKLES - (time.monotonic() - began)))
        await session.close()

    async def tell(self, word: str) -> None:
        assert self.sink.stdin is not None
        self.sink.stdin.write(word.encode() + b"\n")
        self.sink.stdin.flush()

    async def report(self) -> dict[str, Any]:
        assert self.sink.stdout is not None
        await self.tell("report")
        found: dict[str, Any] = json.loads(await asyncio.to_thread(self.sink.stdout.readline))
        for role, process in self.processes.items():
            self.most_memory[role] = max(self.most_memory.get(role, 0), process.memory_info().rss)
        return found

    async def run(self, text: str) -> None:
        await self.database.sql(text)

    @asynccontextmanager
    async def roles(self) -> AsyncIterator[None]:
        async def are_there() -> bool:
            return bool(await self.database.value("SELECT COUNT(*) FROM worker_presence") == len(ROLES))

        with _all(*([sys.executable, "-m", "tidings", "run", role] for role in ROLES), env=self._environment()) as run:
            self.processes = {role: psutil.Process(one.pid) for role, one in zip(ROLES, run, strict=True)}
            await eventually(are_there, 60, "every role")
            yield
        self.processes = {}

    def _environment(self) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            **self.database.environment(),
            "TIDINGS_SECRET_KEYS": KEY,
            "TIDINGS_ALLOW_HTTP_HOSTS": ",".join(_host(number) for number in range(1, self.bad + self.good + 1)),
            "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
            "TIDINGS_LOG_LEVEL": "error",
        }


def _host(number: int) -> str:
    """Each has a host of its own: connections to one and the same are limited, whosever they are."""
    return f"127.0.{number // 200 + 1}.{number % 200 + 1}"


@asynccontextmanager
async def stage(database: Database, good: int, bad: int, timeout: float, paused: bool) -> AsyncIterator[Stage]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with _all([sys.executable, "-m", "bench.noisy.sink"], **pipes) as (sink,):
        assert sink.stdout is not None
        one = Stage(database, sink, int(sink.stdout.readline()), good, bad, timeout)
        await one.set(paused)
        try:
            yield one
        finally:
            await database.empty()
            await database.close()


@contextmanager
def _all(*commands: list[str], **options: Any) -> Iterator[list[subprocess.Popen[bytes]]]:
    run = [subprocess.Popen(command, **options) for command in commands]
    try:
        yield run
    finally:
        for process in run:
            process.terminate()
        for process in run:
            process.wait(90)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
