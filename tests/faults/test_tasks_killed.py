"""Whoever moves tasks dies at any statement: each task is in exactly one of the two tables, before and after.

The archiver, a submit that replaces, and a person's retry and cancel, each cut at every statement it sends.
"""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy
from tests.support.processes import Process, tidings
from tests.support.queue import HISTORY, Queue
from tests.support.waiting import eventually
from tidings.decisions.submitting import accept_task
from tidings.errors import DatabaseError
from tidings.model.event import EventLimits
from tidings.roles.archiver.archiver import Archiver
from tidings.roles.task_producer.operations import TaskProducerOperations
from tidings.roles.tasks.commands import cancel, retry

pytestmark = pytest.mark.slow


@pytest.fixture
def queue(engine: Database) -> Queue:
    return Queue(engine)


async def struck_everywhere(
    proxy: FaultProxy, work: Callable[[], Awaitable[Any]], begin: Callable[[], Awaitable[None]], least: set[str]
) -> AsyncIterator[str]:
    """Runs `work` once in peace, then once for each fault; after each of them says which it was."""
    await begin()
    proxy.clear()
    await work()
    seen = [*dict.fromkeys(proxy.seen)]
    assert least <= set(seen)
    for name in seen:
        for when in ("before", "after"):
            await begin()
            proxy.clear()
            proxy.arm(fault := Fault(name, CUT, when))
            with suppress(DatabaseError):  # nobody notices a connection that was lost before the first question
                await work()
            assert proxy.fired == [fault]
            yield f"{when} {name}"


async def test_an_archiver_that_dies_anywhere_leaves_each_task_in_one_table(
    queue: Queue, proxy: FaultProxy, engine: Database, mortal: None
) -> None:
    archiver = await engine.open("task_archiver", proxy)
    tasks: list[int] = []

    async def begin() -> None:
        tasks[:] = await queue.ended(4)

    async def work() -> None:
        await Archiver(archiver, 60.0).step()

    async def all_are_archived(another: Archiver) -> bool:
        await another.step()
        return set((await queue.where()).values()) == {"history"}

    writing = {"archiver.finished_tasks", "archiver.archive_tasks", "archiver.remove_tasks", "task_archiver.commit"}
    async for struck in struck_everywhere(proxy, work, begin, writing):
        places = await queue.where()
        assert len({places[task] for task in tasks}) == 1, struck
        another = Archiver(await engine.open("task_archiver"), 60.0)
        # Those that the dead one had locked are passed over until the server has noticed.
        await eventually(partial(all_are_archived, another), what=f"all to be archived, {struck}")


async def test_a_replacement_that_dies_anywhere_is_whole_or_did_not_happen(
    queue: Queue, proxy: FaultProxy, engine: Database, mortal: None
) -> None:
    producer = await engine.open("task_producer", proxy)
    keys: list[str] = []

    async def begin() -> None:
        (id,) = await queue.ended()
        keys[:] = [(await queue.row(id))["biz_key"]]

    async def work() -> None:
        task = accept_task("MAIL", keys[0], '"new"', correlation_id="c", limits=EventLimits())
        await TaskProducerOperations.step(producer, lambda operations: operations.submit([task], replace=True))

    writing = {"task_producer.archive_finished", "task_producer.insert_tasks", "task_producer.commit"}
    async for struck in struck_everywhere(proxy, work, begin, writing):
        await queue.where()
        (now,) = [row for row in await queue.rows() if row["biz_key"] == keys[0]]
        archived = [row for row in await queue.rows(HISTORY) if row["biz_key"] == keys[0]]
        assert (now["payload"] == '"new"') == bool(archived), struck


async def test_a_command_that_dies_anywhere_is_audited_if_and_only_if_it_happened(
    queue: Queue, proxy: FaultProxy, engine: Database, mortal: None
) -> None:
    operator = await engine.open("dead_letter_operator", proxy)
    tasks: dict[str, int] = {}

    async def begin() -> None:
        (tasks["failed"],), (tasks["old"],), (tasks["waiting"],) = (
            await queue.ended(status=4),
            await queue.ended(),
            await queue.add(),
        )
        await queue.archive(tasks["old"])

    async def work() -> None:
        await retry(operator, [tasks["failed"], tasks["old"]], "cli:ann")
        await cancel(operator, [tasks["waiting"]], "", "cli:ann")

    writing = {"tasks.retry_tasks", "tasks.submit_archived", "tasks.cancel_tasks", "tasks.audit"}
    async for struck in struck_everywhere(proxy, work, begin, writing):
        audited = {subject for _, _, subject in await queue.audited()}
        keys = {row["biz_key"]: row["id"] for row in await queue.rows(HISTORY)}
        (key,) = [key for key, id in keys.items() if id == tasks["old"]]
        happened = {
            "failed": (await queue.row(tasks["failed"]))["status"] == 0,
            "old": any(row["biz_key"] == key for row in await queue.rows()),
            "waiting": (await queue.row(tasks["waiting"]))["status"] == 4,
        }
        assert happened == {name: f"task:{task}" in audited for name, task in tasks.items()}, struck
        assert happened["failed"] == happened["old"], struck


async def test_an_archiver_process_that_is_killed_between_its_statements_has_moved_nothing(
    queue: Queue, engine: Database, proxy: FaultProxy, start: Callable[[Process], Process]
) -> None:
    """The real process and SIGKILL."""
    tasks = await queue.ended(3)
    environment = engine.environment() | {
        "TIDINGS_DATABASE_URL_TASK_ARCHIVER": proxy.url(engine.url("task_archiver")),
        "TIDINGS_ARCHIVE_AFTER": "1m",
    }
    proxy.arm(Fault("archiver.archive_tasks", KILL(), "after"))
    process = start(tidings("run", "archiver", **environment))
    await proxy.until_fired(30)
    assert process.wait() == -signal.SIGKILL, process.output
    assert await queue.where() == dict.fromkeys(tasks, "queue")
