"""Wake-ups between processes: gathered, after the commit, never the producer's; lost ones cost a pause and no more."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

import tidings
from tests.runtime.deaf_relay import deaf_relay
from tests.support.commands import run
from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.waiting import eventually, pause
from tidings.db.engine import open_engine
from tidings.errors import StatementFailed
from tidings.runtime import loop as loop_module
from tidings.runtime import wakeups as wakeups_module
from tidings.runtime.loop import Pace, Work, keep_going
from tidings.runtime.wakeups import Wakeups, channel
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice, WakeupsUnheard

only_postgresql = pytest.mark.one_engine("postgresql", reason="MySQL and MariaDB have no notifications")


@asynccontextmanager
async def awake(database: Database, *stages: str, url: str = "") -> AsyncIterator[Wakeups]:
    """The wake-ups of one process with these stages, for the length of a block; they listen when it begins."""
    engine = await open_engine(
        url or database.url("saga_orchestrator"), owner="saga_orchestrator", names=database.names, size=1
    )
    wakeups, stopping = Wakeups(stages), asyncio.Event()
    going = asyncio.create_task(wakeups.run(engine, database.names.schema, stopping))
    for stage in () if url else stages:  # a bell is rung when it begins to listen
        assert await wakeups.bell(stage).heard(10)
    try:
        yield wakeups
    finally:
        stopping.set()
        await asyncio.wait_for(going, 5)
        await engine.close()


@asynccontextmanager
async def overheard(database: Database, *stages: str) -> AsyncIterator[list[str]]:
    """Every notification for these stages, with a driver of its own."""
    heard: list[str] = []
    connection = await asyncpg.connect(database.admin_url)
    for stage in stages:
        await connection.add_listener(channel(database.names.schema, stage), lambda *told: heard.append(told[2]))
    yield heard
    connection.terminate()


@only_postgresql
async def test_a_role_in_another_process_is_woken_at_once(engine: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own pause would take a minute."""
    monkeypatch.setattr(loop_module, "SECONDS_ALERT", 0.0)
    steps: list[float] = []

    async def step() -> bool:
        steps.append(time.monotonic())
        return False

    async with awake(engine, "orchestrator") as here, awake(engine, "worker") as there:
        stopping = asyncio.Event()
        work = Work(step, lambda: asyncio.sleep(0, False), Pace(60))
        going = asyncio.create_task(keep_going("worker", work, stopping, there.bell("worker")))
        await eventually(lambda: steps, what="the first step")
        here.ring("worker")
        await eventually(lambda: len(steps) == 2, what="a step", timeout=5)
        stopping.set()
        await going


@only_postgresql
async def test_a_stage_of_the_same_process_needs_no_server(engine: Database) -> None:
    async with awake(engine, "orchestrator", "worker") as wakeups, overheard(engine, "worker", "router") as heard:
        wakeups.ring("worker")
        assert await wakeups.bell("worker").heard(1)
        wakeups.ring("router")
        await eventually(lambda: heard, what="the one that goes out")
        assert heard == [channel(engine.names.schema, "router")]


@only_postgresql
async def test_many_rings_are_few_notifications(engine: Database) -> None:
    async with awake(engine, "router") as wakeups, overheard(engine, "orchestrator", "task-worker") as heard:
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            wakeups.ring("orchestrator")
            wakeups.ring("task-worker")
            await pause(0)
        await eventually(lambda: heard, what="any")
        await pause(0.1)
        most = 0.4 / wakeups_module.SECONDS_BETWEEN_NOTIFICATIONS + 2
        assert 2 <= heard.count(channel(engine.names.schema, "orchestrator")) <= most


@only_postgresql
async def test_another_installation_of_the_same_database_is_not_woken(engine: Database) -> None:
    async with awake(engine, "worker") as wakeups:
        await engine.sql(f'NOTIFY "{channel("other", "worker")}"', "observer")
        await engine.sql(f'NOTIFY "{channel(engine.names.schema, "router")}"', "observer")
        assert not await wakeups.bell("worker").heard(0.2)


@only_postgresql
async def test_a_listener_whose_session_was_ended_listens_again(
    engine: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups_module, "SECONDS_UNTIL_LISTENING_AGAIN", 0.1)
    ended = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND pid <> pg_backend_pid()"
    )
    async with awake(engine, "worker") as there, awake(engine, "router") as here:
        await engine.sql(ended, "admin")
        assert await there.bell("worker").heard(10)  # rung when it listens again: who knows what was missed

        async def is_woken() -> bool:
            here.ring("worker")
            return await there.bell("worker").heard(0.5)

        await eventually(is_woken, what="a wake-up")


@only_postgresql
@pytest.mark.slow
async def test_a_listener_outlives_the_server(engine: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups_module, "SECONDS_UNTIL_LISTENING_AGAIN", 0.1)
    async with awake(engine, "worker") as there, awake(engine, "router") as here:
        await asyncio.to_thread(engine.server.kill)
        here.ring("worker")  # is lost
        await pause(0.2)
        await asyncio.to_thread(engine.server.start)

        async def is_woken() -> bool:
            here.ring("worker")
            return await there.bell("worker").heard(0.5)

        assert await there.bell("worker").heard(20)
        await eventually(is_woken, 20, "a wake-up")


@only_postgresql
async def test_behind_a_pooler_that_passes_nothing_on_it_says_so_and_roles_poll(
    engine: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as PgBouncer in transaction mode: no LISTEN, no state of a session, and everything works all the same."""
    monkeypatch.setattr(wakeups_module, "SECONDS_TO_BE_HEARD", 0.3)
    monkeypatch.setattr(wakeups_module, "SECONDS_UNHEARD", 0.1)
    told: list[Notice] = []
    async with deaf_relay(engine.server.port) as relay:
        url = engine.url("saga_orchestrator").replace(f":{engine.server.port}/", f":{relay}/")
        with listening(told.append, WakeupsUnheard):
            async with awake(engine, "worker", url=url) as there:
                await eventually(lambda: told, what="the notice")
                await pause(1)
                assert not await there.bell("worker").heard(0)
    assert told == [WakeupsUnheard(0.1)]


@only_postgresql
async def test_a_producers_transaction_notifies_nobody(engine: Database) -> None:
    """NOTIFY inside it would make its commit six to eight times as dear."""
    stages = ("router", "orchestrator", "worker", "task-worker")
    connection = await asyncpg.connect(engine.url("event_ingest_writer"))
    async with overheard(engine, *stages) as heard:
        async with connection.transaction():
            await tidings.publish(connection, "order.paid", {"n": 1}, schema=engine.names.schema)
        await engine.sql(f'NOTIFY "{channel(engine.names.schema, "router")}"', "observer")
        await eventually(lambda: heard, what="that of the test")
        await pause(0.1)
        assert len(heard) == 1
    connection.terminate()


async def test_publish_of_the_command_line_wakes_the_router_after_its_commit(
    engine: Database, proxy: FaultProxy, tmp_path: Path
) -> None:
    """In a statement of its own; where there are no notifications, in none."""
    environment = engine.environment()
    environment["TIDINGS_DATABASE_URL_EVENT_INGEST_WRITER"] = proxy.url(engine.url("event_ingest_writer"))
    await asyncio.to_thread(run, "publish", "order.paid", cwd=tmp_path, env=environment)
    asked = [name for name in proxy.seen if not name.startswith("migrations.")]
    told = ["event_ingest_writer.notify"] if engine.family == "postgresql" else []
    assert asked[-1 - len(told) :] == ["event_ingest_writer.commit", *told]


@pytest.mark.one_engine("mariadb", reason="the others have notifications")
async def test_where_there_are_no_notifications_nobody_is_told_and_nobody_listens(engine: Database) -> None:
    opened = await engine.open("job_worker")
    assert not opened.can_notify
    await opened.notify(["tidings:tidings:worker"])
    async with opened.bare_session() as session:
        with pytest.raises(StatementFailed):
            await session.listen(["c"], print, print)
