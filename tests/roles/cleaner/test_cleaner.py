"""Stale leases are ended, by the cleaner alone: reset a few times, then failed; sagas are not its business.

Seed r02 §2.4, phase 6, rulings 6 and 7. Time is moved by data.
"""

import asyncio
import datetime
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.fault_proxy import CUT, FREEZE, Fault, FaultProxy
from tests.support.locks import somebody_waits
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.model.job import JobStatus
from tidings.roles.cleaner.cleaner import SECONDS_BEFORE_THE_FIRST, Cleaned, Cleaner
from tidings.roles.worker.operations import LeasedJob, Report, WorkerOperations
from tidings.telemetry.notices import LeaseExpired, LeaseReset, Notice

pytestmark = pytest.mark.slow

JOBS = "webhook_delivery_jobs"
LEASED = "status = 'Leased', worker_id = 'w1', lease_token = 17"
MOMENT = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
EXPIRED = f"{LEASED}, lease_until = '2020-01-01'"


class Leases:
    """Jobs of an installation, and cleaners of it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def jobs(self, count: int, state: str = EXPIRED) -> list[int]:
        """Jobs in this state, each of a saga of its own."""
        before = await self.database.value(f"SELECT COALESCE(MAX(id), 0) FROM {JOBS}")
        values = ", ".join(f"({before + number}, 1, '2020-01-01', 1)" for number in range(1, count + 1))
        await self.database.sql(
            f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no) VALUES {values}"
        )
        await self.database.sql(f"UPDATE {JOBS} SET {state} WHERE id > {before}")
        return [row["id"] for row in await self.rows() if row["id"] > before]

    async def rows(self) -> Sequence[Any]:
        return [dict(row) for row in await self.database.sql(f"SELECT * FROM {JOBS} ORDER BY id")]

    async def expire(self) -> None:
        await self.database.sql(f"UPDATE {JOBS} SET {EXPIRED} WHERE status IN ('Pending', 'Leased')")

    async def cleaner(self, max_lease_resets: int = 3, through: FaultProxy | None = None, **options: Any) -> Cleaner:
        options = {"patience": 0, **options}
        return Cleaner(await self.database.open("lease_cleaner", through), max_lease_resets, **options)

    async def worker(self, through: FaultProxy | None = None) -> Engine:
        return await self.database.open("job_worker", through)


def report_of(job: int) -> Report:
    """What the worker says that leased it under the first token."""
    leased = LeasedJob(job, job, 1, 1, MOMENT, 1, "c", "a", "{}", token=17)
    return Report(leased, JobStatus.COMPLETED, 200, None, None, b"", 1)


@pytest.fixture
def leases(engine: Database) -> Leases:
    return Leases(engine)


async def test_a_stale_lease_is_reset_under_a_new_token(leases: Leases) -> None:
    """r02 §2.4: "Safely reset them to Pending"; ruling 6: a new token; ruling 16: leasable from now on."""
    await leases.jobs(1)
    (before,) = await leases.rows()
    assert await (await leases.cleaner()).step() == Cleaned(reset=1)
    (after,) = await leases.rows()
    assert (after["status"], after["worker_id"], after["lease_resets"]) == ("Pending", None, 1)
    assert after["lease_token"] not in (0, 17)
    assert after["lease_until"] >= after["created_at"]
    changed = {"status", "worker_id", "lease_resets", "lease_token", "lease_until", "active_saga_id"}
    assert {name: after[name] for name in after if name not in changed} == {
        name: before[name] for name in before if name not in changed
    }


async def test_each_reset_sets_another_token(leases: Leases) -> None:
    await leases.jobs(1)
    tokens = set()
    for _ in range(3):
        await (await leases.cleaner()).step()
        (job,) = await leases.rows()
        tokens.add(job["lease_token"])
        await leases.expire()
    assert len(tokens) == 3


async def test_three_expiries_are_reset_and_the_fourth_fails_the_job(leases: Leases) -> None:
    """Ruling 7: error lease_expired, outcome unknown; and it stays so."""
    await leases.jobs(1)
    cleaner = await leases.cleaner()
    for resets in (1, 2, 3):
        assert await cleaner.step() == Cleaned(reset=1)
        (job,) = await leases.rows()
        assert (job["status"], job["lease_resets"]) == ("Pending", resets)
        await leases.expire()
    assert await cleaner.step() == Cleaned(failed=1)
    (job,) = await leases.rows()
    assert (job["status"], job["error_code"], job["response_status"]) == ("Failed", "lease_expired", None)
    assert job["finished_at"] is not None
    assert job["applied_at"] is None
    assert job["lease_token"] != 17
    assert not (await cleaner.step()).did_work


async def test_how_often_is_a_setting(leases: Leases) -> None:
    await leases.jobs(2)
    assert await (await leases.cleaner(max_lease_resets=0)).step() == Cleaned(failed=2)


async def test_the_worker_that_lost_its_lease_can_not_report_any_more(leases: Leases) -> None:
    """Ruling 6, catalogue A4 and A5: neither while the job waits nor while somebody else has it."""
    (job,) = await leases.jobs(1)
    await (await leases.cleaner()).step()
    engine = await leases.worker()
    late = report_of(job)
    before = await leases.rows()
    assert await WorkerOperations.step(engine, lambda operations: operations.report([late])) == {job}
    assert await leases.rows() == before
    await leases.database.sql(f"UPDATE {JOBS} SET status = 'Leased', lease_token = 99, worker_id = 'w2'")
    before = await leases.rows()
    assert await WorkerOperations.step(engine, lambda operations: operations.report([late])) == {job}
    assert await leases.rows() == before


async def test_what_has_not_expired_is_left_alone(leases: Leases) -> None:
    """Whatever else is in the table: leased with time left, waiting, finished, and no matter how old."""
    old = "lease_until = '2020-01-01'"
    await leases.jobs(1, f"{LEASED}, lease_until = '2100-01-01'")
    await leases.jobs(1, f"status = 'Pending', {old}")
    await leases.jobs(1, f"status = 'Completed', worker_id = 'w1', {old}")
    await leases.jobs(1, f"status = 'Failed', worker_id = 'w1', error_code = 'timeout', {old}")
    before = await leases.rows()
    assert not (await (await leases.cleaner()).step()).did_work
    assert await leases.rows() == before


async def test_only_the_clock_of_the_database_decides_to_the_moment(leases: Leases) -> None:
    """r02 §2.4: lease_until < now. A lease that ends in a second is stale in a second, and not before."""
    words = Words(leases.database)
    await leases.jobs(1, f"{LEASED}, lease_until = {words.later(words.now_of_a_row, 1)}")
    cleaner = await leases.cleaner()

    async def is_reset() -> bool:
        await cleaner.step()
        (row,) = await leases.rows()
        return bool(row["status"] == "Pending")

    (before,) = await leases.rows()
    await eventually(is_reset, what="the lease to be stale")
    (after,) = await leases.rows()
    assert after["lease_until"] > before["lease_until"]


async def test_several_cleaners_at_once_reset_each_lease_once(leases: Leases) -> None:
    """r02 §2.4: "Ensure reset is idempotent"."""
    await leases.jobs(600)
    cleaners = [await leases.cleaner(batch=50) for _ in range(4)]

    async def clean(cleaner: Cleaner) -> int:
        reset = 0
        while (done := await cleaner.step()).did_work:
            reset += done.reset
        return reset

    assert sum(await asyncio.gather(*map(clean, cleaners))) == 600
    assert {(row["status"], row["lease_resets"]) for row in await leases.rows()} == {("Pending", 1)}


async def test_a_report_and_a_reset_at_once_leave_one_of_them(leases: Leases) -> None:
    """Catalogue A7: the lease is reported or reset, never both, however they race."""
    ids = await leases.jobs(200)
    engine = await leases.worker()
    reports = [report_of(job) for job in ids]

    async def report(some: Sequence[Report]) -> set[int]:
        return await WorkerOperations.step(engine, lambda operations: operations.report(some))

    cleaner = await leases.cleaner(batch=10)
    lost: set[int] = set()
    for start in range(0, 200, 20):
        some = await asyncio.gather(report(reports[start : start + 20]), cleaner.step(), cleaner.step())
        lost |= some[0]
    for row in await leases.rows():
        if row["status"] == "Completed":
            assert (row["id"] in lost, row["lease_resets"]) == (False, 0)
        else:
            assert (row["id"] in lost, row["status"], row["lease_resets"]) == (True, "Pending", 1)


async def test_a_lease_that_is_being_reported_is_passed_over(leases: Leases, proxy: FaultProxy) -> None:
    """Catalogue A7: the worker was a moment faster, and has not committed yet."""
    (job,) = await leases.jobs(1)
    worker, cleaner = await leases.worker(proxy), await leases.cleaner()
    proxy.arm(Fault("job_worker.commit", FREEZE))
    reporting = asyncio.create_task(WorkerOperations.step(worker, lambda it: it.report([report_of(job)])))
    await proxy.until_fired()
    assert not (await cleaner.step()).did_work
    proxy.thaw()
    assert await reporting == set()
    assert not (await cleaner.step()).did_work
    (row,) = await leases.rows()
    assert (row["status"], row["lease_resets"], row["lease_token"]) == ("Completed", 0, 17)


async def test_a_report_that_waits_for_a_reset_comes_too_late(leases: Leases, proxy: FaultProxy) -> None:
    """Catalogue A7, the other way round: the cleaner has chosen the lease, and writes after the worker asked."""
    (job,) = await leases.jobs(1)
    worker, cleaner = await leases.worker(), await leases.cleaner(through=proxy)
    proxy.arm(Fault("cleaner.stale_leases", FREEZE, "after"))
    cleaning = asyncio.create_task(cleaner.step())
    await proxy.until_fired()
    reporting = asyncio.create_task(WorkerOperations.step(worker, lambda it: it.report([report_of(job)])))
    await somebody_waits(leases.database)
    proxy.thaw()
    assert await cleaning == Cleaned(reset=1)
    assert await reporting == {job}
    (row,) = await leases.rows()
    assert (row["status"], row["lease_resets"], row["finished_at"]) == ("Pending", 1, None)


async def test_a_batch_is_bounded_and_the_longest_expired_come_first(leases: Leases) -> None:
    young = await leases.jobs(2, f"{LEASED}, lease_until = '2021-01-01'")
    old = await leases.jobs(3)
    assert await (await leases.cleaner(batch=3)).step() == Cleaned(reset=3)
    assert [row["id"] for row in await leases.rows() if row["status"] == "Leased"] == young
    assert [row["id"] for row in await leases.rows() if row["status"] == "Pending"] == old


async def test_sagas_are_never_touched(leases: Leases) -> None:
    """Phase 6: "Never touch saga state"; it has not even the right to read them."""
    await leases.database.sql(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status)"
        " VALUES (1, 1, 'c', 'InProgress')"
    )
    before = await leases.database.sql("SELECT * FROM webhook_delivery_sagas")
    await leases.jobs(2)
    await (await leases.cleaner(max_lease_resets=0)).step()
    assert await leases.database.sql("SELECT * FROM webhook_delivery_sagas") == before


async def test_the_notices_say_whose_lease_it_was(leases: Leases, told: list[Notice]) -> None:
    """r02 §5.3: saga_id, job_id, error_code, lease_expiration, worker_id."""
    first, second = await leases.jobs(2)
    await leases.database.sql(f"UPDATE {JOBS} SET lease_resets = 3 WHERE id = {second}")
    await (await leases.cleaner()).step()
    (reset,) = [one for one in told if isinstance(one, LeaseReset)]
    (failed,) = [one for one in told if isinstance(one, LeaseExpired)]
    assert (reset.job_id, reset.worker_id, reset.lease_resets) == (first, "w1", 1)
    assert (failed.job_id, failed.worker_id, failed.lease_resets) == (second, "w1", 4)
    assert failed.error_code == "lease_expired"
    assert reset.lease_expiration.startswith("2020-01-01")


async def test_it_waits_after_it_connected(leases: Leases) -> None:
    """So that workers can report first. By default 5 seconds."""
    assert SECONDS_BEFORE_THE_FIRST == 5.0
    await leases.jobs(1)
    cleaner = await leases.cleaner(patience=2)
    assert not (await cleaner.step()).did_work

    async def has_cleaned() -> bool:
        return (await cleaner.step()).did_work

    await eventually(has_cleaned, what="the cleaner to begin")


@pytest.mark.parametrize("statement", ["lease_cleaner.begin", "cleaner.stale_leases"])
async def test_it_waits_again_after_its_connection_was_lost(leases: Leases, proxy: FaultProxy, statement: str) -> None:
    """Also within the very step that finds the old connection gone and makes a new one."""
    cleaner = await leases.cleaner(through=proxy, patience=3600)
    cleaner._engine.connected_at -= 7200
    await leases.jobs(1)
    proxy.arm(Fault(statement, CUT))
    for _ in range(2):
        assert not (await cleaner.step()).did_work
    assert len(proxy.fired) == 1
    (job,) = await leases.rows()
    assert job["status"] == "Leased"
