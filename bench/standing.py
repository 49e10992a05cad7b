"""An installation whose roles are up and have nothing to do, and an endpoint that notes when a request comes."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager

from bench.backlog import filling
from bench.payload import ADMIN_KEY, KEY
from bench.ports import LOOPBACK, free_port, listens
from bench.sink import Answering
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually

API_PORT = free_port()

Arrivals = asyncio.Queue[float]


class Noting(Answering):
    """Answers, after it noted the moment by this machine's clock."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals

    def data_received(self, data: bytes) -> None:
        self._arrivals.put_nowait(time.perf_counter())
        super().data_received(data)


@asynccontextmanager
async def endpoint() -> AsyncIterator[tuple[int, Arrivals]]:
    """Its port, and when requests came."""
    arrivals: Arrivals = asyncio.Queue()
    server = await asyncio.get_running_loop().create_server(lambda: Noting(arrivals), LOOPBACK, 0)
    yield server.sockets[0].getsockname()[1], arrivals
    server.close()


async def prepare(database: Database, port: int) -> None:
    """One subscription to everything, one route, open gates."""
    async with filling(database) as backlog:
        await backlog.subscribe([f"http://{LOOPBACK}:{port}/"])
        await backlog.open_gates()


@asynccontextmanager
async def running(
    database: Database, groups: Sequence[Sequence[str]], urls: Sequence[Mapping[str, str]] = ()
) -> AsyncIterator[list[Process]]:
    """A process for each group of roles, from the moment at which all of them are there; `urls` go before its own."""
    wanted = sum(role != "api" for roles in groups for role in roles)

    async def are_there() -> bool:
        return bool(await database.value("SELECT COUNT(*) FROM worker_presence") == wanted)

    with ExitStack() as started:
        processes = [
            started.enter_context(tidings("run", *roles, **{**environment(database), **own}))
            for roles, own in zip(groups, urls or [{}] * len(groups), strict=True)
        ]
        try:
            await eventually(are_there, 60, "every role")
            if any("api" in roles for roles in groups):
                await eventually(lambda: listens(API_PORT), 60, "the API")
            yield processes
        except BaseException:
            print(*(process.output for process in processes), sep="\n")
            raise
        for process in processes:
            process.terminate()
        for process in processes:
            await asyncio.to_thread(process.wait, 30)


def environment(database: Database) -> dict[str, str]:
    return {
        **database.environment(),
        "TIDINGS_SECRET_KEYS": KEY,
        "TIDINGS_ADMIN_KEY": ADMIN_KEY,
        "TIDINGS_PORT": str(API_PORT),
        "TIDINGS_ALLOW_HTTP_HOSTS": LOOPBACK,
        "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
        "TIDINGS_LOG_LEVEL": "error",
    }
