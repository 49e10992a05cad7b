"""Submitting and archiving read as many rows among many tasks as among few. Counted by the server."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.plans.counters import Counters, Reads, beyond, counters_of, reads_of
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.queue import HISTORY, TASKS, Queue
from tidings.db.engine import Engine
from tidings.decisions.submitting import accept_task
from tidings.model.event import EventLimits
from tidings.roles.archiver.archiver import Archiver
from tidings.roles.task_producer.operations import TaskProducerOperations

pytestmark = pytest.mark.slow

OLD = 40
# The same for every size. On PostgreSQL a row that is found, locked and moved is read by several statements.
BOUNDS = {
    "idle archiver": Reads(rows=60, pages=120),
    "busy archiver": Reads(rows=OLD * 14, pages=OLD * 60),
    "submit": Reads(rows=OLD * 8, pages=OLD * 60),
    "submit again": Reads(rows=OLD * 6, pages=OLD * 30),
    "replace": Reads(rows=OLD * 30, pages=OLD * 120),
}


@pytest.fixture
async def counters(engine: Database) -> AsyncIterator[Counters]:
    counters = await counters_of(engine)
    yield counters
    await counters.close()


async def fill(engine: Database, size: int) -> None:
    """Tasks of every status, touched just now, and as many in the history."""
    numbers = Words(engine).numbers(size)
    await engine.sql(
        f"INSERT INTO {TASKS} (biz_type, biz_key, status, next_run_time)"
        f" SELECT 'MAIL', CONCAT('past ', seq), MOD(seq, 5), '2020-01-01' FROM {numbers}"
    )
    await engine.sql(
        f"INSERT INTO {HISTORY} (id, biz_type, biz_key, status) SELECT 1000000000 + seq, 'MAIL', 'x', 2 FROM {numbers}"
    )


@pytest.mark.parametrize("size", [1_000, 20_000, pytest.param(1_000_000, marks=pytest.mark.full)])
async def test_what_is_read_does_not_depend_on_how_many_tasks_there_are(
    engine: Database, counters: Counters, size: int
) -> None:
    await fill(engine, size)
    queue, found = Queue(engine), {}

    async def reads(role: str, work: Callable[[Engine], Awaitable[int]], expected: int) -> Reads:
        async def expectedly(opened: Engine) -> None:
            assert await work(opened) == expected

        return await reads_of(counters, await engine.open(role), expectedly)

    async def archive(opened: Engine) -> int:
        return (await Archiver(opened, 3600.0).step()).moved

    async def submit(opened: Engine, *, replace: bool = False) -> int:
        tasks = [accept_task("MAIL", key, "{}", correlation_id="c", limits=EventLimits()) for key in keys]
        done = await TaskProducerOperations.step(opened, lambda operations: operations.submit(tasks, replace=replace))
        return sum(not one.duplicate for one in done)

    found["idle archiver"] = await reads("task_archiver", archive, 0)
    await queue.ended(OLD)
    found["busy archiver"] = await reads("task_archiver", archive, OLD)
    keys = [f"new {number}" for number in range(OLD)]
    found["submit"] = await reads("task_producer", submit, OLD)
    found["submit again"] = await reads("task_producer", submit, 0)
    # Every fifth task of the past has succeeded.
    keys = [f"past {number}" for number in range(2, 5 * OLD, 5)]
    found["replace"] = await reads("task_producer", lambda opened: submit(opened, replace=True), OLD)
    assert not beyond(found, BOUNDS, f"among {size:,}")
