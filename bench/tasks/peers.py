"""Runs the peers on the same server, each in its own database, with packages that are fetched into a Python apart."""

import asyncio
import json
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from tests.support.database import Database
from tests.support.sessions import connect

HERE = Path(__file__).parent
PACKAGES = ("procrastinate==3.10.0", "pgqueuer==1.6.0", "asyncpg", "psycopg[binary,pool]")
# As many as end within a minute or two.
PEERS = {"pgqueuer": 50_000, "procrastinate": 5_000}


@dataclass(frozen=True)
class Peer:
    """Tasks in a second."""

    name: str
    tasks: int
    single: float
    bulk: float
    drain: float


def measure_peers(database: Database, most: int) -> list[Peer]:
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        return [_measure(database, python, name, min(tasks, most)) for name, tasks in PEERS.items()]


async def _make_database(database: Database, name: str) -> None:
    session = await connect(database.admin_url)
    await session.run(f"CREATE DATABASE {name}")
    await session.close()


def _measure(database: Database, python: Path, name: str, tasks: int) -> Peer:
    asyncio.run(_make_database(database, name))
    url = f"{database.admin_url.rpartition('/')[0]}/{name}"
    script = HERE / f"peer_{name}.py"
    ended = subprocess.run(
        [python, script, url, str(tasks), str(min(500, tasks // 2))], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        sys.exit(f"{name} failed:\n{ended.stderr}")
    return Peer(name, tasks, **json.loads(ended.stdout.splitlines()[-1]))
