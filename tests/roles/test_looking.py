"""The cheap question of each role, whether a step would find something: never wrong for longer than a moment."""

from collections.abc import AsyncIterator

import pytest

from tests.roles.orchestrator.scene import Scene as Sagas
from tests.roles.router.scene import Scene as Routing
from tests.roles.worker.scene import Scene as Jobs
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.fault_proxy import FaultProxy
from tests.support.receiver import Receiver
from tests.support.waiting import eventually
from tidings.db.engine import open_engine
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.router import router as router_module
from tidings.roles.router.passes import Outcome
from tidings.roles.router.router import Router


@pytest.fixture
async def routing(engine: Database) -> AsyncIterator[Routing]:
    made = Routing(engine, Router(await engine.open("event_router")))
    yield made
    await made.close()


async def rested(routing: Routing) -> Router:
    """A router with a cursor, open gates, and nothing to do."""
    await routing.open_gates()
    await routing.route()
    assert (await routing.drain()).outcome is Outcome.IDLE
    return routing.router


async def test_a_router_that_has_nothing_to_do_sees_an_event_by_one_statement(
    proxy: FaultProxy, routing: Routing
) -> None:
    router = await routing.new_router(engine=await routing.engine(proxy, size=1))
    await routing.open_gates()
    await routing.drain(router)
    proxy.clear()
    assert not await router.look()
    await routing.event()
    assert await router.look()
    assert proxy.seen == ["router.glance"] * 2


async def test_a_router_looks_past_the_lock_of_another_pass(routing: Routing) -> None:
    router = await rested(routing)
    session = await routing.session()
    await session.run("BEGIN")
    await session.run("SELECT 1 FROM route_worker_cursors FOR UPDATE")
    assert not await router.look()
    await routing.event()
    assert await router.look()


async def test_a_router_notices_what_a_person_or_another_instance_did_to_its_cursor(routing: Routing) -> None:
    await routing.events(3)
    router = await rested(routing)
    assert not await router.look()
    await routing.rewind()
    assert await router.look()
    await routing.drain()
    assert not await router.look()
    await routing.event()
    other = await routing.new_router()
    await routing.drain(other)
    assert await router.look()


async def test_a_router_with_holes_does_not_rely_on_a_glance(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes late comes behind its position, where a glance does not look."""
    monkeypatch.setattr(router_module, "SECONDS_WITH_HOLES", 0.05)
    await routing.subscription()
    router = await rested(routing)
    late = await routing.late_writer()
    await routing.event()
    await routing.drain()
    await late.run("COMMIT")
    await eventually(router.look, what="a pass for the hole")
    await routing.drain()
    assert len(await routing.sagas()) == 2


async def test_a_router_makes_a_pass_now_and_then_and_after_a_new_connection(
    routing: Routing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is no longer the one it knew, only a pass can tell."""
    router = await rested(routing)
    assert not await router.look()
    router._engine.connections += 1
    assert await router.look()
    await router.step()
    assert not await router.look()
    monkeypatch.setattr(router_module, "SECONDS_WITHOUT", 0.0)
    await router.step()
    assert await router.look()


async def test_a_router_that_stands_still_rests(routing: Routing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router_module, "SECONDS_STOPPED", 60.0)
    router = await rested(routing)
    await routing.event()
    await routing.set_gate("routing", is_open=False)
    assert (await router.step()).outcome is Outcome.CLOSED
    assert not await router.look()


async def test_a_glance_reads_the_log_by_its_index(routing: Routing) -> None:
    """Also by a plan that was made while the log was small."""
    router = await rested(routing)
    for _ in range(8):  # PostgreSQL keeps a plan after five
        assert not await router.look()
    await routing.events(3000)
    await routing.drain()
    before = await _rows_read(routing)
    for _ in range(50):
        assert not await router.look()
    assert await _rows_read(routing) - before < 1500


async def _rows_read(routing: Routing) -> int:
    database = routing.database
    # A session of PostgreSQL tells what it has read when it likes to, unless it is asked.
    async with routing.router._engine.bare_session() as session:
        await session.command(Words(database).be_counted)
    if database.family == "postgresql":
        # Other tests have installations of their own on the same server.
        ours = f"schemaname = '{database.names.schema}' AND relname = 'events'"
        by_index = f"SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes WHERE {ours}"
        scanned = f"SELECT seq_tup_read + ({by_index}) FROM pg_stat_user_tables WHERE {ours}"
        return int(await database.value(scanned, "admin"))
    return int(
        await database.value(
            "SELECT SUM(variable_value) FROM information_schema.global_status"
            " WHERE variable_name IN ('HANDLER_READ_NEXT', 'HANDLER_READ_RND_NEXT')",
            "admin",
        )
    )


async def test_an_orchestrator_sees_what_is_due_and_what_came_back(engine: Database) -> None:
    sagas = await Sagas.of(engine)
    orchestrator = sagas.orchestrator
    assert not await orchestrator.look()
    saga = await sagas.saga(await sagas.subscription())
    assert await orchestrator.look()
    await sagas.step()
    assert not await orchestrator.look()  # it is being sent
    await sagas.finish("http_500")
    assert await orchestrator.look()
    await sagas.step()
    assert not await orchestrator.look()  # its next attempt is later
    await sagas.make_due()
    assert await orchestrator.look()
    await sagas.step()
    await sagas.finish()
    await sagas.step()
    assert (await sagas.one("webhook_delivery_sagas", saga))["status"] == "Completed"
    assert not await orchestrator.look()


async def test_a_worker_sees_jobs_that_may_be_leased_now(engine: Database) -> None:
    async with Receiver() as receiver:
        jobs = Jobs(engine, receiver)
        worker = await jobs.worker()
        assert not await worker.look()
        (job,) = await jobs.jobs(await jobs.subscription())
        assert await worker.look()
        await jobs.ready_since(job, -60)
        assert not await worker.look()
        await worker.close()
        await jobs.close()


async def test_a_cleaner_sees_leases_that_have_expired(engine: Database) -> None:
    cleaner = Cleaner(await engine.open("lease_cleaner"), 3, patience=0)
    await engine.sql(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no, status, lease_until,"
        " worker_id) VALUES (1, 1, '2020-01-01', 1, 'Leased', '2999-01-01', 'w')"
    )
    assert not await cleaner.look()
    await engine.sql("UPDATE webhook_delivery_jobs SET lease_until = '2020-01-01'")
    assert await cleaner.look()
    assert (await cleaner.step()).reset == 1
    assert not await cleaner.look()


async def test_a_shared_login_looks_inside_a_transaction(engine: Database, proxy: FaultProxy) -> None:
    """It brings nothing along that the planner must know; a transaction says it."""
    shared = await open_engine(
        proxy.url(engine.admin_url),
        owner="lease_cleaner",
        names=engine.names,
        group=engine.names.group("lease_cleaner"),
    )
    assert not await Cleaner(shared, 3).look()
    assert proxy.seen == ["lease_cleaner.begin", "cleaner.has_stale", "lease_cleaner.commit"]
    await shared.close()
