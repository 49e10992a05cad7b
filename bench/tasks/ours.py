"""Tasks that do nothing, or next to nothing: how fast they are enqueued, and how fast workers drain them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import tidings
from bench.backlog import TASKS
from bench.own_connection import own_connection
from bench.payload import TASK_TYPE
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.decisions.retrying import Backoff
from tidings.roles.task_worker.worker import TaskLimits, TaskWorker
from tidings.runtime.loop import keep_going
from tidings.tasks import Handlers
from tidings.tasks.handlers import Terms
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice, TasksClaimed

CLAIMERS = 8
BULK = 500
# A handler that waits for something: so a worker has a rate of its own, below what the database could do.
SECONDS_OF_A_SHORT_ONE = 0.1
SLOTS_FOR_SHORT_ONES = 16
SHORT_ONES_FOR_EACH = 500


@dataclass(frozen=True)
class Result:
    """One case: so many tasks in so many seconds; `lost` is the part of the candidates that another claimed first."""

    case: str
    tasks: int
    seconds: float
    lost: float = 0.0

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds


async def measure(database: Database, tasks: int, singly: int, *, all_cases: bool = True) -> list[Result]:
    """Enqueued singly and in bulk, drained by one worker; in all cases also by several, and with handlers that wait."""
    singly = min(singly, tasks // 2)
    found = [await _enqueue(database, "enqueue one by one", singly, 1)]
    found.append(await _enqueue(database, f"enqueue {BULK} at a time", tasks - singly, BULK))
    found.append(await _drain(database, "drain, 1 worker", 1))
    if not all_cases:
        return found
    await _enqueue(database, "", tasks, BULK)
    found.append(await _drain(database, f"drain, {CLAIMERS} workers", CLAIMERS))
    for claimers in (1, CLAIMERS):
        await _enqueue(database, "", SHORT_ONES_FOR_EACH * claimers, BULK)
        seconds = SECONDS_OF_A_SHORT_ONE
        found.append(await _drain(database, f"{seconds * 1000:.0f} ms handlers, {claimers} ×", claimers, seconds))
    return found


async def _enqueue(database: Database, case: str, tasks: int, at_a_time: int) -> Result:
    async with _producer(database) as submit:
        keys = [f"{time.monotonic_ns()}-{number}" for number in range(tasks)]
        began = time.perf_counter()
        for first in range(0, tasks, at_a_time):
            await submit(keys[first : first + at_a_time])
        return Result(case, tasks, time.perf_counter() - began)


@asynccontextmanager
async def _producer(database: Database) -> AsyncIterator[Callable[[Sequence[str]], Awaitable[None]]]:
    """Each call is a transaction on an application's own connection, committed."""
    schema = database.names.schema
    async with own_connection(database.url("task_producer")) as (connection, execute):

        async def submit(keys: Sequence[str]) -> None:
            await execute("BEGIN")
            if len(keys) == 1:
                await tidings.submit_task(connection, TASK_TYPE, keys[0], "{}", schema=schema)
            else:
                new = [tidings.NewTask(TASK_TYPE, key, "{}") for key in keys]
                await tidings.submit_tasks(connection, new, schema=schema)
            await execute("COMMIT")

        yield submit


async def drained(database: Database, tasks: int) -> list[tuple[float, int]]:
    """By one worker: how many of so many were claimed by when; at last, when all results were stored."""
    return (await _work_off(database, tasks, 1, 0.0)).moments


async def _drain(database: Database, case: str, claimers: int, seconds_each: float = 0.0) -> Result:
    observer = await connect(database.url("observer"))
    tasks = await _left(observer)
    await observer.close()
    work = await _work_off(database, tasks, claimers, seconds_each)
    return Result(case, tasks, work.moments[-1][0], work.lost / max(1, tasks + work.lost))


@dataclass
class _Work:
    """`moments`: how many were claimed by when."""

    began: float
    moments: list[tuple[float, int]]
    lost: int = 0

    @property
    def claimed(self) -> int:
        return self.moments[-1][1]

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def hear(self, notice: Notice) -> None:
        assert isinstance(notice, TasksClaimed)
        self.lost += notice.lost
        self.moments.append((self.seconds, self.claimed + notice.tasks))


async def _left(observer: Session) -> int:
    return int((await observer.run(f"SELECT COUNT(*) FROM {TASKS} WHERE status IN (0, 1, 3)"))[0][0])


async def _work_off(database: Database, tasks: int, claimers: int, seconds_each: float) -> _Work:
    """Until the last one is stored as a success."""
    handlers = Handlers()

    @handlers.task(TASK_TYPE)
    async def handle(payload: object) -> None:
        if seconds_each:
            await asyncio.sleep(seconds_each)

    observer = await connect(database.url("observer"))

    async def is_over() -> bool:
        return not await _left(observer)

    slots = SLOTS_FOR_SHORT_ONES if seconds_each else 100
    terms = Terms(slots, timeout=60, visibility_timeout=600, backoff=Backoff(60, 3600, 0.1))
    limits = TaskLimits(slots, threads=8, grace=5, terms=terms)
    engines = [await database.open("task_worker", size=3) for _ in range(claimers)]
    workers = [TaskWorker(engine, handlers, f"bench-{number}", limits) for number, engine in enumerate(engines)]
    stopping, work = asyncio.Event(), _Work(time.perf_counter(), [(0.0, 0)])
    with listening(work.hear, TasksClaimed):
        going = [asyncio.create_task(keep_going("task-worker", worker.step, stopping)) for worker in workers]
        await eventually(lambda: work.claimed >= tasks, 1_800, "all claims")
        await eventually(is_over, 600, "all results")
        work.moments.append((work.seconds, work.claimed))
        stopping.set()
        await asyncio.gather(*going)
    for worker in workers:
        await worker.close()
    for engine in engines:
        await engine.close()
    await observer.close()
    return work
