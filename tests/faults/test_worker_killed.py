"""A worker or a cleaner that dies anywhere leaves nothing undone and nothing doubled, and no saga is ever touched."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Literal

import pytest

from tests.roles.worker.scene import Scene
from tests.support.database import Database
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy
from tests.support.processes import Process, hurried
from tests.support.receiver import Answer, Receiver
from tests.support.waiting import eventually
from tidings.db.statements import load_statements
from tidings.errors import DatabaseError
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.worker.worker import Worker

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mortal")]


@pytest.fixture
async def scene(engine: Database) -> AsyncIterator[Scene]:
    async with Receiver() as receiver:
        scene = Scene(engine, receiver)
        yield scene
        await scene.close()


class Deliveries:
    """Jobs for endpoints of three kinds, the same again and again; states are told without what differs each time."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.first = 0

    async def prepare(self) -> None:
        scene = self.scene
        scene.receiver.answer("/broken", Answer(500, b"no", {"retry-after": "7"}))
        self.well = await scene.subscription("/well")
        self.broken = await scene.subscription("/broken")
        self.off = await scene.subscription("/off", active=False)

    async def begin(self) -> None:
        jobs = [job for one in (self.well, self.broken, self.off) for job in await self.scene.jobs(one, 2)]
        self.first = jobs[0]
        self.scene.receiver.requests.clear()

    async def finish(self) -> None:
        """What the dead one had leased expires, a cleaner and another worker do the rest."""
        scene = self.scene
        await scene.sql(
            f"UPDATE webhook_delivery_jobs SET lease_until = created_at WHERE status = 'Leased' AND id >= {self.first}"
        )
        cleaner = await scene.database.open("lease_cleaner")
        await Cleaner(cleaner, 3, patience=0).step()
        rows = await scene.sql(
            f"SELECT id FROM webhook_delivery_jobs WHERE id >= {self.first} AND subscription_id <> {self.off}"
        )
        worker = await scene.worker(engine=await scene.database.open("job_worker", size=3))
        async with scene.working(worker):
            await scene.finished([row["id"] for row in rows])

            async def are_given_back() -> bool:
                where = f"id >= {self.first} AND subscription_id = {self.off} AND lease_until > created_at"
                rows = await scene.sql(f"SELECT id FROM webhook_delivery_jobs WHERE status = 'Pending' AND {where}")
                return len(rows) == 2

            await eventually(are_given_back, what="the others to be given back")
        await scene.database.close()
        await scene.close()

    async def state(self) -> list[Any]:
        jobs = await self.scene.sql(
            "SELECT subscription_id, status, attempt_no, response_status, error_code, retry_after, response_excerpt,"
            f" applied_at FROM webhook_delivery_jobs WHERE id >= {self.first} ORDER BY id"
        )
        sagas = await self.scene.sql("SELECT DISTINCT status, attempt_count FROM webhook_delivery_sagas")
        return [*(tuple(row.values()) for row in jobs), *(tuple(row.values()) for row in sagas)]

    async def repeated(self) -> int:
        """Requests that came once more than their job's lease was reset."""
        (row,) = await self.scene.sql(
            f"SELECT COUNT(*) AS jobs, SUM(lease_resets) AS resets FROM webhook_delivery_jobs WHERE id >= {self.first}"
            f" AND subscription_id <> {self.off}"
        )
        return max(0, len(self.scene.receiver.requests) - int(row["jobs"]) - int(row["resets"]))


async def until_dead(worker: Worker, proxy: FaultProxy) -> None:
    """Works until the fault has struck; then it is gone, in the middle of whatever it was at."""
    with suppress(DatabaseError):
        for _ in range(30):
            await worker.look()
            await worker.step()
            if proxy.fired:
                break
            await eventually(lambda: worker.in_flight == 0, what="the requests")
    await proxy.until_fired()
    await die(worker)


async def die(worker: Worker) -> None:
    tasks = [task for task in (*worker._sending, worker._reporter._outbox._work) if task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("when", ["after", pytest.param("before", marks=pytest.mark.full)])
async def test_a_worker_that_dies_at_any_statement_leaves_nothing_undone(
    scene: Scene, proxy: FaultProxy, when: Literal["before", "after"]
) -> None:
    deliveries = Deliveries(scene)
    await deliveries.prepare()
    await deliveries.begin()
    undisturbed = await scene.worker(engine=await scene.database.open("job_worker", proxy, size=3))
    await undisturbed.look()
    async with scene.working(undisturbed):
        await eventually(lambda: "worker.give_back" in proxy.seen and "worker.report" in proxy.seen, what="both")
    await undisturbed._engine.close()
    await deliveries.finish()
    expected, seen = await deliveries.state(), [*dict.fromkeys(proxy.seen)]
    everything = load_statements("tidings.roles.worker", undisturbed._engine.dialect).keys()
    # Asked only where a report was not stored in full.
    assert {name.removeprefix("worker.") for name in seen} == everything - {"still_ours"} | {
        "job_worker.begin",
        "job_worker.commit",
    }
    wrong = []
    faults = [Fault(name, CUT, when) for name in seen]
    # The first commit ends a look at the installation, the second one a claim, the others give back or report.
    faults += [Fault("job_worker.commit", CUT, when, nth) for nth in (2, 3, 4)]
    for fault in faults:
        await deliveries.begin()
        proxy.clear()
        proxy.arm(fault)
        engine = await scene.database.open("job_worker", proxy, size=3)
        await until_dead(await scene.worker(engine=engine), proxy)
        await engine.close()
        await deliveries.finish()
        if (state := await deliveries.state()) != expected:
            wrong.append(f"{fault}: {state} instead of {expected}")
        if repeated := await deliveries.repeated():
            wrong.append(f"{fault}: {repeated} requests that no lost lease explains")
    assert not wrong


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_worker_that_dies_while_it_looks_for_leases_that_it_lost_has_reported_nothing(
    scene: Scene, proxy: FaultProxy, when: Literal["before", "after"]
) -> None:
    """It asks in the transaction of the report, which is then undone as a whole."""
    scene.receiver.answer("/", Answer(hold=(hold := asyncio.Event())))
    jobs = await scene.jobs(await scene.subscription(), 2)
    engine = await scene.database.open("job_worker", proxy, size=3)
    worker = await scene.worker(engine=engine)
    await worker.step()
    await eventually(lambda: len(scene.receiver.requests) == 2, what="the requests")
    await scene.reset(jobs[0])
    proxy.arm(Fault("worker.still_ours", CUT, when))
    hold.set()
    await proxy.until_fired()
    await die(worker)
    await engine.close()
    assert await scene.statuses() == {"Pending": 1, "Leased": 1}


async def test_a_cleaner_process_that_is_killed_is_made_up_for_by_the_next_one(
    scene: Scene, proxy: FaultProxy, start: Callable[[Process], Process]
) -> None:
    """Catalogue A17: any cleaner will do. A18: it needs no key, and does not ask whose jobs they are."""
    jobs = [*await scene.jobs(await scene.subscription(), 2), *await scene.jobs(await scene.subscription(active=False))]
    await scene.sql("UPDATE webhook_delivery_jobs SET status = 'Leased', worker_id = 'gone', lease_until = created_at")
    environment = scene.database.environment()
    proxied = {"TIDINGS_DATABASE_URL_LEASE_CLEANER": proxy.url(scene.database.url("lease_cleaner"))}
    proxy.arm(Fault("cleaner.reset_leases", KILL(), "after"))
    doomed = start(hurried("run", "cleaner", **environment | proxied))
    await proxy.until_fired(30)
    assert doomed.wait() == -signal.SIGKILL, doomed.output
    assert await scene.statuses() == {"Leased": 3}
    start(hurried("run", "cleaner", **environment))

    async def are_reset() -> bool:
        return await scene.statuses() == {"Pending": 3}

    await eventually(are_reset, 30, "the next one to reset them")
    assert [(await scene.job(job))["lease_resets"] for job in jobs] == [1, 1, 1]


async def test_a_cleaner_that_dies_at_any_statement_counts_each_expiry_once(scene: Scene, proxy: FaultProxy) -> None:
    """Ruling 7: expiries 1–3 reset, the 4th fails the job."""
    subscription = await scene.subscription()
    first = 0

    async def begin() -> None:
        nonlocal first
        jobs = await scene.jobs(subscription, 4)
        first = jobs[0]
        for job, resets in zip(jobs, (0, 2, 3, 0), strict=True):
            # The last one's lease has not ended yet.
            until = "created_at" if job != jobs[-1] else "'2100-01-01'"
            await scene.sql(
                f"UPDATE webhook_delivery_jobs SET status = 'Leased', worker_id = 'w', lease_token = 5,"
                f" lease_resets = {resets}, lease_until = {until} WHERE id = {job}"
            )

    async def finish() -> list[Any]:
        cleaner = Cleaner(await scene.database.open("lease_cleaner"), 3, patience=0)

        async def is_clean() -> bool:
            """What a session that was cut off has locked is passed over until the server has noticed."""
            await cleaner.step()
            left = "status = 'Leased' AND lease_until < '2100-01-01'"
            return not await scene.sql(f"SELECT id FROM webhook_delivery_jobs WHERE id >= {first} AND {left}")

        await eventually(is_clean, what="every lease to be ended")
        await scene.database.close()
        rows = await scene.sql(
            "SELECT status, lease_resets, worker_id, error_code, attempt_no,"
            " CASE WHEN lease_token = 5 THEN 1 ELSE 0 END AS kept"
            f" FROM webhook_delivery_jobs WHERE id >= {first} ORDER BY id"
        )
        await scene.sql(
            f"UPDATE webhook_delivery_jobs SET lease_until = '2100-01-01' WHERE id >= {first} AND status = 'Leased'"
        )
        return [tuple(row.values()) for row in rows]

    await begin()
    engine = await scene.database.open("lease_cleaner", proxy, size=3)
    await clean(Cleaner(engine, 3, patience=0))
    await engine.close()
    seen = [*dict.fromkeys(proxy.seen)]
    everything = load_statements("tidings.roles.cleaner", engine.dialect).keys()
    assert everything <= {name.removeprefix("cleaner.") for name in seen}
    expected = await finish()
    assert expected == [
        ("Pending", 1, None, None, 1, 0),
        ("Pending", 3, None, None, 1, 0),
        ("Failed", 4, "w", "lease_expired", 1, 0),
        ("Leased", 0, "w", None, 1, 1),
    ]
    wrong = []
    for fault in [Fault(name, CUT, when) for name in seen for when in ("before", "after")]:
        await begin()
        proxy.clear()
        proxy.arm(fault)
        engine = await scene.database.open("lease_cleaner", proxy, size=3)
        # A session that was lost before it was asked anything is replaced without a word.
        with suppress(DatabaseError):
            await clean(Cleaner(engine, 3, patience=0))
        assert proxy.fired == [fault]
        await engine.close()
        if (state := await finish()) != expected:
            wrong.append(f"{fault}: {state}")
    assert not wrong


async def clean(cleaner: Cleaner) -> None:
    """As its loop does."""
    if await cleaner.look():
        await cleaner.step()
