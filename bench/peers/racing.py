"""One after the other on the same server, each in a database of its own: enqueued singly and in bulk, then drained."""

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import tidings
from bench.backlog import AT_ONCE, TASKS, filling
from bench.peers import installing
from bench.product import HANDLERS, Group, running
from bench.tasks.ours import measure
from tests.support.database import Database
from tests.support.sessions import connect
from tests.support.waiting import eventually

PROGRAMS = Path(__file__).parent / "programs"
# More would come in several transactions, and who begins before the last would be ahead of the clock.
MOST = AT_ONCE
PEERS = {"graphile-worker": MOST, "pgqueuer": MOST, "procrastinate": 5_000}
"""And how many tasks each is given at most: as many as end within a minute or so."""
SINGLY = 500
OURS, AS_USED = "tidings", "tidings, as users run it"


@dataclass(frozen=True)
class Racer:
    """Tasks in a second; None for what was not measured of it."""

    name: str
    version: str
    tasks: int
    single: float | None
    bulk: float | None
    drain: float


async def ours(database: Database, tasks: int, singly: int = SINGLY) -> list[Racer]:
    """A worker in this process, to which nobody listens; then a process with log, metrics and all."""
    tasks = min(tasks, MOST)
    single, bulk, drain = await measure(database, tasks, singly, all_cases=False)
    bare = Racer(OURS, tidings.__version__, tasks, single.rate, bulk.rate, drain.rate)
    await database.empty()
    used = await _drained_by_a_process(database, tasks)
    await database.empty()
    return [bare, Racer(AS_USED, tidings.__version__, tasks, None, None, used)]


async def _drained_by_a_process(database: Database, tasks: int) -> float:
    """From the first claim to the last result; how soon it notices that there is work is another matter."""
    worker = Group("task-worker", ("task-worker",))
    async with running(database, [worker], TIDINGS_APP=HANDLERS), filling(database) as backlog:
        await backlog.add_tasks(tasks)

        async def is_any(statuses: str) -> bool:
            return bool(await backlog.run(f"SELECT 1 FROM {TASKS} WHERE status IN ({statuses}) LIMIT 1"))

        async def is_over() -> bool:
            return not await is_any("0, 1, 3")

        await eventually(lambda: is_any("1, 2"), 60, "the first claim")
        began = time.perf_counter()
        await eventually(is_over, 600, "the last result")
        return tasks / (time.perf_counter() - began)


def peer(database: Database, name: str, most: int, singly: int) -> Racer | None:
    """None where it can't be run here."""
    how = _command(name)
    if how is None:
        return None
    command, folder = how
    tasks = min(PEERS[name], most)
    made = asyncio.run(_make_database(database, name.replace("-", "_")))
    ended = subprocess.run(
        [*command, made, str(tasks), str(min(singly, tasks // 2))],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"{name} failed:\n{ended.stdout}{ended.stderr}")
    found = json.loads(ended.stdout.splitlines()[-1])
    return Racer(name, found["version"], tasks, found["single"], found["bulk"], found["drain"])


def _command(name: str) -> tuple[list[str], Path] | None:
    """What runs it, and in which folder."""
    program = PROGRAMS / f"with_{name.replace('-', '_')}"
    if name != "graphile-worker":
        return [str(installing.python()), f"{program}.py"], Path.cwd()
    folder = installing.node_folder()
    return (["node", f"{program}.mjs"], folder) if folder else None


async def _make_database(database: Database, name: str) -> str:
    session = await connect(database.admin_url)
    await session.run(f"CREATE DATABASE {name}")
    await session.close()
    return f"{database.admin_url.rpartition('/')[0]}/{name}"
