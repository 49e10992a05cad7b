"""Reports: in batches, under the token of the lease, heard once whatever happens on the way (rulings 6 and 7)."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from tests.roles.worker.scene import Scene, loopback_courier
from tests.support.database import Database
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tests.support.receiver import Answer
from tests.support.waiting import eventually
from tidings.courier import Courier, Request, Result
from tidings.db import engine as engine_module
from tidings.db.engine import Engine
from tidings.roles.worker.operations import WorkerOperations
from tidings.telemetry.notices import DeliveryCrashed, LeaseLost, Notice, ReportDelayed, RowSetAside

pytestmark = pytest.mark.slow


@pytest.fixture
async def attacked(engine: Database, proxy: FaultProxy) -> AsyncIterator[Engine]:
    """The worker's way to its database, by way of the proxy."""
    opened = await engine.open("job_worker", through=proxy, size=3, patience=5)
    yield opened
    await opened.close()


async def test_reports_are_made_in_batches(scene: Scene, proxy: FaultProxy, attacked: Engine) -> None:
    jobs = await scene.jobs(await scene.subscription(), 300)
    async with scene.working(await scene.worker(engine=attacked)):
        await scene.finished(jobs)
    assert proxy.seen.count("worker.report") < 60
    assert "worker.still_ours" not in proxy.seen


async def test_no_transaction_is_open_while_a_request_is_under_way(scene: Scene, engine: Database) -> None:
    scene.receiver.answer("/", Answer(hold=(hold := asyncio.Event())))
    (job,) = await scene.jobs(await scene.subscription())
    worker = await scene.worker()
    await worker.step()
    await eventually(lambda: scene.receiver.requests, what="the request")
    open_ones = (
        "SELECT COUNT(*) AS n FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        if engine.family == "postgresql"
        else "SELECT COUNT(*) AS n FROM information_schema.innodb_trx"
    )
    assert await engine.value(open_ones, "admin") == 0
    hold.set()
    await worker.close()
    assert (await scene.job(job))["status"] == "Completed"


async def test_a_late_report_from_a_zombie_worker_changes_nothing_and_is_counted(
    scene: Scene, told: list[Notice]
) -> None:
    """Catalogue A4: the job was reset, sent again by another, and is finished."""
    hold = asyncio.Event()
    scene.receiver.answer(
        "/", lambda request: Answer(500, hold=hold) if len(scene.receiver.requests) == 1 else Answer()
    )
    (job,) = await scene.jobs(await scene.subscription())
    zombie, other = await scene.worker(), await scene.worker()
    await zombie.step()
    await eventually(lambda: scene.receiver.requests, what="the first request")
    await scene.reset(job)
    async with scene.working(other):
        await scene.finished([job])
    before = await scene.job(job)
    hold.set()
    await zombie.close()
    assert await scene.job(job) == before
    assert (before["status"], before["worker_id"], before["attempt_no"]) == ("Completed", "worker2", 1)
    assert (zombie.lost_leases, other.lost_leases) == (1, 0)
    (lost,) = [one for one in told if isinstance(one, LeaseLost)]
    assert (lost.job_id, lost.saga_id, lost.worker_id) == (job, before["saga_id"], "worker1")
    assert (lost.error_code, lost.response_status) == ("http_500", 500)
    assert len({request.message for request in scene.receiver.requests}) == 1


async def test_a_late_report_is_refused_also_while_the_other_worker_is_still_sending(scene: Scene) -> None:
    """Catalogue A5: the row is Leased again, so that its status alone would not tell."""
    first, second = asyncio.Event(), asyncio.Event()
    scene.receiver.answer("/", lambda _: Answer(hold=(first if len(scene.receiver.requests) == 1 else second)))
    (job,) = await scene.jobs(await scene.subscription())
    zombie, other = await scene.worker(), await scene.worker()
    await zombie.step()
    await eventually(lambda: scene.receiver.requests, what="the first request")
    await scene.reset(job)
    await other.step()
    await eventually(lambda: len(scene.receiver.requests) == 2, what="the second request")
    first.set()
    await zombie.close()
    row = await scene.job(job)
    assert (row["status"], row["worker_id"], row["finished_at"]) == ("Leased", "worker2", None)
    assert zombie.lost_leases == 1
    second.set()
    await other.close()
    assert (await scene.job(job))["status"] == "Completed"
    assert other.lost_leases == 0


async def test_a_late_report_takes_nothing_from_its_neighbours(scene: Scene) -> None:
    hold = asyncio.Event()
    scene.receiver.answer("/", Answer(hold=hold))
    jobs = await scene.jobs(await scene.subscription(), 10)
    worker = await scene.worker()
    await worker.step()
    await eventually(lambda: len(scene.receiver.requests) == 10, what="the requests")
    for job in jobs[:3]:
        await scene.reset(job)
    hold.set()
    await worker.close()
    assert await scene.statuses() == {"Pending": 3, "Completed": 7}
    assert worker.lost_leases == 3


async def test_a_token_that_is_off_by_one_is_another_token(scene: Scene) -> None:
    """A number of 63 bits that is compared as a float would be the same one."""
    (job,) = await scene.jobs(await scene.subscription())
    token = 2**62 + 12_345
    await scene.sql(f"UPDATE webhook_delivery_jobs SET status = 'Leased', lease_token = {token} WHERE id = {job}")
    engine = await scene.database.open("job_worker")
    for wrong in (token - 1, token + 1):
        (leased,) = await WorkerOperations.step(engine, partial(WorkerOperations.leased_jobs, ids=[job], token=wrong))
        await WorkerOperations.step(engine, partial(WorkerOperations.give_back, jobs=[leased], delay=0, new_token=1))
        row = await scene.job(job)
        assert (row["status"], row["lease_token"]) == ("Leased", token)
    (leased,) = await WorkerOperations.step(engine, lambda it: it.leased_jobs([job], token))
    await WorkerOperations.step(engine, lambda it: it.give_back([leased], 0, 1))
    assert await scene.statuses() == {"Pending": 1}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("statement", ["worker.report", "job_worker.commit"])
async def test_a_connection_lost_while_reporting_loses_nothing_and_sends_nothing_twice(
    scene: Scene, proxy: FaultProxy, attacked: Engine, statement: str, when: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catalogue A14 and A15; a commit whose answer is lost is looked up by the token."""
    monkeypatch.setattr(engine_module, "_FIRST_PAUSE", 0.01)
    scene.receiver.answer("/", Answer(hold=(hold := asyncio.Event())))
    await scene.jobs(await scene.subscription(), 5)
    worker = await scene.worker(engine=attacked)
    await worker.step()
    await eventually(lambda: len(scene.receiver.requests) == 5, what="the requests")
    proxy.arm(Fault(statement, CUT, when))
    hold.set()
    await worker.close()
    assert len(proxy.fired) == 1
    assert await scene.statuses() == {"Completed": 5}
    assert worker.lost_leases == 0
    assert len(scene.receiver.requests) == 5


async def test_a_database_that_is_away_for_a_while_hears_every_report_in_the_end(
    scene: Scene, proxy: FaultProxy, attacked: Engine, told: list[Notice]
) -> None:
    scene.receiver.answer("/", Answer(hold=(hold := asyncio.Event())))
    await scene.jobs(await scene.subscription(), 5)
    worker = await scene.worker(engine=attacked)
    await worker.step()
    await eventually(lambda: len(scene.receiver.requests) == 5, what="the requests")
    proxy.refuse_connections(True)
    proxy.cut_all()
    hold.set()
    closing = asyncio.create_task(worker.close())
    await eventually(lambda: [one for one in told if isinstance(one, ReportDelayed)], 40, what="the report to fail")
    proxy.refuse_connections(False)
    await closing
    assert await scene.statuses() == {"Completed": 5}
    assert worker.lost_leases == 0


async def test_a_report_that_the_database_refuses_stops_no_other(scene: Scene, told: list[Notice]) -> None:
    """It is set aside and told."""
    table = "ALTER TABLE webhook_delivery_jobs"
    await scene.sql(f"{table} ADD CONSTRAINT not_poisoned CHECK (response_status <> 299)")
    try:
        scene.receiver.answer("/bad", Answer(299))
        (bad,) = await scene.jobs(await scene.subscription("/bad"))
        jobs = await scene.jobs(await scene.subscription("/good"), 9)
        async with scene.working(await scene.worker()):
            await scene.finished(jobs)
            await eventually(lambda: [one for one in told if isinstance(one, RowSetAside)], what="the word of it")
        assert (await scene.job(bad))["status"] == "Leased"
    finally:
        await scene.sql(f"{table} DROP CONSTRAINT not_poisoned")


class ClumsyCourier(Courier):
    """The real one, with a fault that nobody planned for."""

    async def send(self, request: Request) -> Result:
        if request.url.endswith("/crash"):
            raise ZeroDivisionError("nobody planned for this")
        return await super().send(request)


async def test_a_crash_while_sending_is_told_and_leaves_the_lease_to_expire(scene: Scene, told: list[Notice]) -> None:
    courier = loopback_courier(ClumsyCourier)
    (bad,) = await scene.jobs(await scene.subscription("/crash"))
    jobs = await scene.jobs(await scene.subscription("/fine"), 3)
    async with scene.working(await scene.worker(courier=courier)):
        await scene.finished(jobs)
    (crash,) = [one for one in told if isinstance(one, DeliveryCrashed)]
    assert (crash.job_id, crash.error) == (bad, "ZeroDivisionError: nobody planned for this")
    assert (await scene.job(bad))["status"] == "Leased"
