"""The product's own processes, as users run them: one for each role, default logging into a file, metrics on."""

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.payload import ADMIN_KEY, KEY
from bench.ports import LOOPBACK, free_port, listens
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.flow import OWNER

API = "api"
PROGRAM = "tidings"
HANDLERS = "bench.tasks.handlers"
"""The application of task workers."""


@dataclass(frozen=True)
class Group:
    """Roles that share a process, how many such processes there are, and which program runs them."""

    name: str
    roles: Sequence[str]
    program: str = PROGRAM
    options: Sequence[str] = ()
    processes: int = 1


@dataclass(frozen=True)
class Running:
    """The leaders by the names of their groups, and where the API listens if there is one."""

    pids: Mapping[str, int]
    api: str


@asynccontextmanager
async def running(
    database: Database, groups: Sequence[Group], profiles: Path | None = None, **environment: str
) -> AsyncIterator[Running]:
    """From the moment at which every role is there; ended cleanly, and what they said is shown if something fails.

    With a folder for `profiles` each process writes what cProfile sees there, and is much slower.
    """
    wanted = sum(group.processes for group in groups for role in group.roles if role != API)
    port = free_port()
    owner = await connect(database.url(OWNER))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        made = {**_environment(database), "TIDINGS_PORT": str(port), **environment}
        processes = {group.name: stack.enter_context(_started(group, folder, made, profiles)) for group in groups}
        try:
            await eventually(lambda: _is_present(owner, wanted), 90, "every role")
            if any(API in group.roles for group in groups):
                await eventually(lambda: listens(port), 90, "the API")
            pids = {name: process.pid for name, process in processes.items()}
            yield Running(pids, f"http://{LOOPBACK}:{port}/v1/events")
        except BaseException:
            _show(folder)
            raise
        finally:
            for process in processes.values():
                process.terminate()
            await owner.close()


def _started(
    group: Group, folder: Path, environment: Mapping[str, str], profiles: Path | None
) -> subprocess.Popen[bytes]:
    if profiles:
        profiles.mkdir(parents=True, exist_ok=True)
    several = ["--processes", str(group.processes)] if group.processes > 1 else []
    profiled = ["-m", "cProfile", "-o", str(profiles / group.name)] if profiles else []
    command = [sys.executable, *profiled, "-m", group.program, "run", *group.roles, *several, *group.options]
    with open(folder / group.name, "wb") as log:
        own = {"TIDINGS_METRICS_PORT": str(free_port())}
        return subprocess.Popen(command, env={**environment, **own}, stdout=log, stderr=log)


def _show(folder: Path) -> None:
    for log in sorted(folder.iterdir()):
        print(f"--- {log.name}", log.read_text(errors="replace")[-5_000:], sep="\n", file=sys.stderr)


def _environment(database: Database) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ},
        **database.environment(),
        "TIDINGS_SECRET_KEYS": KEY,
        "TIDINGS_ADMIN_KEY": ADMIN_KEY,
        "TIDINGS_ALLOW_HTTP_HOSTS": LOOPBACK,
        "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
    }


async def _is_present(owner: Session, wanted: int) -> bool:
    ((count,),) = await owner.run("SELECT COUNT(*) FROM worker_presence")
    return bool(count >= wanted)
