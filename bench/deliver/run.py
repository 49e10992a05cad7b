"""One case: a backlog of events, one process for all roles, a sink in another, and the clock until all is completed."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.support.database import Database
from tests.support.waiting import eventually
from tidings.db.statements import Statement
from tidings.vault import Vault, seal_secret

KEY = "a-key-for-the-bench"
SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
BATCH = 1000
ROLES = ("router", "orchestrator", "worker", "cleaner")
NEEDED = ", ".join(f"'{role}'" for role in ROLES)
COMPLETED = Statement(
    "bench.completed", "SELECT COUNT(*) AS n FROM webhook_delivery_sagas WHERE status = 'Completed'", ()
)


# Which program runs the roles, by the client that sends.
CLIENTS = {"ours": "tidings", "aiohttp": "bench.deliver.with_aiohttp"}


@dataclass(frozen=True)
class Case:
    subscriptions: int
    events: int
    client: str = "ours"


@dataclass(frozen=True)
class Result(Case):
    """`cpu` is what the process of all roles used of one core; `first` the seconds until the first was completed."""

    _: KW_ONLY
    completed: int
    seconds: float
    first: float
    cpu: float
    resets: int

    @property
    def rate(self) -> float:
        return self.completed / self.seconds


async def race(database: Database, case: Case, limit: float, profile: Path | None) -> Result:
    with _process([sys.executable, "-m", "bench.deliver.sink"], stdout=subprocess.PIPE) as sink:
        assert sink.stdout is not None
        port = int(sink.stdout.readline())
        await _prepare(database, port, case)
        try:
            return await _measure(database, case, limit, profile)
        finally:
            await database.empty()
            await database.close()


async def _measure(database: Database, case: Case, limit: float, profile: Path | None) -> Result:
    sagas, first = case.events * case.subscriptions, 0.0
    profiled = ["-m", "cProfile", "-o", str(profile)] if profile else []
    program = [sys.executable, *profiled, "-m", CLIENTS[case.client], "run", "all"]

    async def are_there() -> bool:
        found = await database.value(f"SELECT COUNT(DISTINCT process) FROM worker_presence WHERE process IN ({NEEDED})")
        return bool(found == len(ROLES))

    observer = await database.open("observer")
    with _process(program, env=_environment(database)) as process:
        watched = psutil.Process(process.pid)
        # What it takes to start is no part of it: the gates are opened when every role is there.
        await eventually(are_there, 60, "every role")
        for gate in ("routing", "router:default"):
            await database.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        began, used = time.perf_counter(), sum(watched.cpu_times()[:2])
        completed = 0
        while completed < sagas and time.perf_counter() - began < limit:
            await asyncio.sleep(0.2)
            async with observer.transaction() as transaction:
                (row,) = await transaction.rows(COMPLETED)
            completed = row["n"]
            first = first or (time.perf_counter() - began if completed else 0.0)
        seconds = time.perf_counter() - began
        cpu = (sum(watched.cpu_times()[:2]) - used) / seconds
    resets = await database.value("SELECT COALESCE(SUM(lease_resets), 0) FROM webhook_delivery_jobs")
    return Result(**asdict(case), completed=completed, seconds=seconds, first=first, cpu=cpu, resets=int(resets))


async def _prepare(database: Database, port: int, case: Case) -> None:
    vault = Vault([KEY])
    await database.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
    for number in range(1, case.subscriptions + 1):
        sealed = seal_secret(vault, number, SECRET, created_at=0, overlap=0).hex()
        secret = f"'\\x{sealed}'" if database.family == "postgresql" else f"x'{sealed}'"
        await database.sql(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified, max_in_flight, secrets)"
            f" VALUES ('*', 'http://127.0.0.1:{port}/{number}', true, true, 64, {secret})"
        )
    values = ", ".join(['(\'order.paid\', \'{"order": 1, "amount": "12.50"}\')'] * BATCH)
    for _ in range(case.events // BATCH):
        await database.sql(f"INSERT INTO events (event_type, payload) VALUES {values}")


def _environment(database: Database) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        **database.environment(),
        "TIDINGS_SECRET_KEYS": KEY,
        "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
        "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
        "TIDINGS_MAX_IN_FLIGHT": "64",
        "TIDINGS_LOG_LEVEL": "error",
    }


@contextmanager
def _process(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()
