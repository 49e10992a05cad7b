"""Which jobs a worker leases, how many at once, and what it gives back unsent (seed r02 §2.3, rulings 9 and 16)."""

import asyncio
import threading
from collections import Counter

import pytest

from tests.roles.worker.scene import LIMITS, SHORT, Scene
from tests.support.fault_proxy import FREEZE, Fault, FaultProxy
from tests.support.receiver import Answer, Received
from tests.support.waiting import eventually, pause
from tidings.roles.worker import worker as worker_module
from tidings.telemetry.notices import JobsGivenBack, JobsLeased, Notice

pytestmark = pytest.mark.slow


async def test_jobs_are_leased_in_the_order_in_which_they_became_ready(scene: Scene) -> None:
    """Ruling 16: `lease_until` of a Pending job is the instant from which on it may be leased."""
    jobs = await scene.jobs(await scene.subscription(), 5)
    order = [3, 0, 4, 2, 1]
    for place, number in enumerate(order):
        await scene.ready_since(jobs[number], 100 - place)
    async with scene.working(await scene.worker(slots=1)):
        await scene.finished(jobs)
    assert [jobs.index(job) for job in await scene.arrived()] == order


async def test_a_job_is_not_leased_before_its_time(scene: Scene) -> None:
    early, late = await scene.jobs(await scene.subscription(), 2)
    await scene.ready_since(late, -3600)
    async with scene.working(await scene.worker()):
        await scene.finished([early])
        assert (await scene.job(late))["status"] == "Pending"


async def test_a_lease_says_whose_it_is_until_when_and_under_which_token(scene: Scene) -> None:
    """r02 §2.3: "Immediately update: status = 'Leased', lease_until = now + lease_duration"."""
    scene.receiver.answer("/", Answer(hold=(hold := asyncio.Event())))
    jobs = await scene.jobs(await scene.subscription(), 2)
    async with scene.working(await scene.worker()):
        await eventually(lambda: len(scene.receiver.requests) == 2, what="the requests")
        first, second = [await scene.job(job) for job in jobs]
        left = (first["lease_until"] - first["created_at"]).total_seconds()
        hold.set()
    assert (first["status"], first["worker_id"]) == ("Leased", "worker1")
    assert 59 < left < 90
    assert first["lease_token"] == second["lease_token"] != 0
    assert await scene.statuses() == {"Completed": 2}


async def test_an_expired_lease_of_another_is_left_to_the_cleaner(scene: Scene) -> None:
    """An expired `Leased` row is nobody's until the cleaner has reset it."""
    stale, fresh = await scene.jobs(await scene.subscription(), 2)
    await scene.ready_since(stale, 1000)
    await scene.sql(f"UPDATE webhook_delivery_jobs SET status = 'Leased', worker_id = 'gone' WHERE id = {stale}")
    async with scene.working(await scene.worker()):
        await scene.finished([fresh])
        assert (await scene.job(stale))["worker_id"] == "gone"


async def test_slots_are_kept_full_and_never_overfull(scene: Scene) -> None:
    hold = asyncio.Event()
    paths = [f"/{number}" for number in range(4)]
    jobs = []
    for path in paths:
        scene.receiver.answer(path, Answer(hold=hold))
        jobs += await scene.jobs(await scene.subscription(path), 15)
    async with scene.working(await scene.worker(slots=8)):
        await eventually(lambda: scene.receiver.open.total() == 8, what="all slots to be taken")
        hold.set()
        await scene.finished(jobs)
    assert scene.receiver.most_open_in_all == 8
    assert {scene.receiver.most_open[path] for path in paths} == {2}


async def test_a_subscription_has_no_more_requests_under_way_than_it_allows(scene: Scene) -> None:
    hold, jobs = asyncio.Event(), list[int]()

    def held_after_the_first(request: Received) -> Answer:
        """Only who has answered once gets all that it allows."""
        return Answer(hold=hold if len(scene.receiver.at(request.path)) > 1 else None)

    for path, own in (("/three", 3), ("/greedy", 1000)):
        scene.receiver.answer(path, held_after_the_first)
        jobs += await scene.jobs(await scene.subscription(path, max_in_flight=own), 40)
    # A quarter of the slots, whatever it wishes.
    allowed = {"/three": 3, "/greedy": 8}
    async with scene.working(await scene.worker(slots=32)):
        await eventually(lambda: scene.receiver.open == allowed, what="as many as are allowed")
        hold.set()
        await scene.finished(jobs)
    assert scene.receiver.most_open == allowed


async def test_a_hanging_subscription_does_not_slow_the_others(scene: Scene) -> None:
    """Nor does a slow or a dead one."""
    scene.receiver.answer("/hangs", Answer(hangs=True))
    await scene.jobs(await scene.subscription("/hangs", timeout_seconds=30), 500)
    jobs = await scene.jobs(await scene.subscription("/well"), 500)
    worker = await scene.worker()

    async def most_is_given_back() -> bool:
        """As many under way, and as many that wait; the rest is anybody's."""
        return bool((await scene.statuses())["Leased"] <= 2 * LIMITS.max_in_flight)

    async with scene.working(worker):
        await scene.finished(jobs)
        assert scene.receiver.most_open["/hangs"] == LIMITS.max_in_flight
        assert all(one.answered is None for one in scene.receiver.at("/hangs"))
        await eventually(most_is_given_back, what="it to be known that it hangs")
        scene.hang_up()
    resets = await scene.sql("SELECT DISTINCT lease_resets AS n FROM webhook_delivery_jobs")
    assert [row["n"] for row in resets] == [0]


async def test_however_many_hang_all_slots_are_for_the_others(scene: Scene) -> None:
    """Once they are known to hang; until then each has two at a time."""
    paths = [f"/hangs/{number}" for number in range(12)]
    for path in paths:
        scene.receiver.answer(path, Answer(hangs=True))
        await scene.jobs(await scene.subscription(path, timeout_seconds=2), 8)
    worker = await scene.worker(slots=16)
    async with scene.working(worker):
        await eventually(lambda: worker.in_flight == 16, what="all slots to be taken")
        await eventually(lambda: len(worker._pace) == len(paths), 20, "all of them to be known")
        await eventually(lambda: worker.in_flight <= 8, what="what they had under way to end")
        for _ in range(3):
            await scene.finished(await scene.jobs(await scene.subscription("/well"), 10))
            assert worker.in_flight <= 8
        await eventually(lambda: worker._free == 16, what="no slot to be taken by those that hang")
        scene.hang_up()


async def test_what_a_hanging_subscription_has_too_many_of_is_not_carried_to_and_fro(
    scene: Scene, told: list[Notice]
) -> None:
    """Each goes back once, for as long as those before it take; not all of them again and again."""
    scene.receiver.answer("/hangs", Answer(hangs=True))
    await scene.jobs(await scene.subscription("/hangs", timeout_seconds=30), 500)

    def given_back() -> Counter[int]:
        crowded = [one for one in told if isinstance(one, JobsGivenBack) and one.reason == "crowded"]
        return Counter(job for one in crowded for job in one.job_ids)

    async with scene.working(await scene.worker()):
        await eventually(lambda: len(given_back()) >= 400, what="most of them to be given back")
        await pause(2.5)
        assert given_back().total() < 2 * 500
        scene.hang_up()


async def test_jobs_of_a_subscription_that_no_longer_allows_it_are_given_back_for_a_while(
    scene: Scene, told: list[Notice]
) -> None:
    """And not leased again and again meanwhile."""
    inactive, unverified = await scene.subscription("/a", active=False), await scene.subscription("/b", verified=False)
    stuck = [*await scene.jobs(inactive, 3), *await scene.jobs(unverified, 3)]
    jobs = await scene.jobs(await scene.subscription("/c"), 3)
    async with scene.working(await scene.worker()):
        await scene.finished(jobs)
        await scene.finished(await scene.jobs(await scene.subscription("/d"), 3))
    assert {request.path for request in scene.receiver.requests} == {"/c", "/d"}
    for job in stuck:
        row = await scene.job(job)
        assert (row["status"], row["lease_resets"], row["worker_id"]) == ("Pending", 0, None)
        assert 20 < (row["lease_until"] - row["created_at"]).total_seconds() < 90
    leased = Counter(job for one in told if isinstance(one, JobsGivenBack) for job in one.job_ids)
    assert leased == dict.fromkeys(stuck, 1)


async def test_it_is_sent_when_it_is_allowed_again(scene: Scene) -> None:
    subscription = await scene.subscription(active=False)
    (job,) = await scene.jobs(subscription)
    async with scene.working(await scene.worker()):

        async def is_back() -> bool:
            row = await scene.job(job)
            return bool(row["status"] == "Pending" and row["lease_token"] != 0)

        await eventually(is_back, what="the job to be given back")
        await scene.sql(f"UPDATE subscriptions SET active = true WHERE id = {subscription}")
        await scene.ready_since(job, 1)
        await scene.finished([job])


async def test_what_was_not_sent_is_given_back_when_the_worker_stops(scene: Scene, told: list[Notice]) -> None:
    """Ruling 7: "Giving an unsent lease back is no expiry"."""
    hold = asyncio.Event()
    scene.receiver.answer("/", Answer(hold=hold))
    jobs = await scene.jobs(await scene.subscription(max_in_flight=2), 4)
    worker = await scene.worker()
    assert await worker.step()
    await eventually(lambda: len(scene.receiver.requests) == 2, what="the requests")
    closing = asyncio.create_task(worker.close())

    def given_back() -> list[JobsGivenBack]:
        return [one for one in told if isinstance(one, JobsGivenBack)]

    await eventually(given_back, what="the rest to be given back")
    hold.set()
    await closing
    rows = [await scene.job(job) for job in jobs]
    assert sorted((row["status"], row["worker_id"], row["lease_resets"], row["error_code"]) for row in rows) == [
        *[("Completed", "worker1", 0, None)] * 2,
        *[("Pending", None, 0, None)] * 2,
    ]
    assert [one.reason for one in given_back()] == ["stopping"]
    assert len(scene.receiver.requests) == 2


async def test_a_stop_waits_for_requests_under_way_and_leases_nothing_new(scene: Scene, told: list[Notice]) -> None:
    """All slots are taken when it is told to stop; what is still Pending stays so."""
    hold = asyncio.Event()
    scene.receiver.answer("/", Answer(hold=hold))
    await scene.jobs(await scene.subscription(), 12)
    worker = await scene.worker(slots=8, max_in_flight=2)
    told_to_stop, stopped = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with scene.working(worker):
            await eventually(lambda: len(scene.receiver.requests) == 2, what="the requests")
            told_to_stop.set()
        stopped.set()

    working = asyncio.create_task(work())
    await told_to_stop.wait()
    await pause(0.6)
    assert not stopped.is_set()
    leased = sum(one.jobs for one in told if isinstance(one, JobsLeased))
    hold.set()
    await working
    assert sum(one.jobs for one in told if isinstance(one, JobsLeased)) == leased
    assert await scene.statuses() == {"Completed": 2, "Pending": 10}


async def test_a_job_that_waited_too_long_for_its_turn_is_given_back_unsent(scene: Scene, told: list[Notice]) -> None:
    """Ruling 9: "A send starts only if timeout + margin fits what is left of the lease; … given back, uncounted"."""
    hold = asyncio.Event()
    scene.receiver.answer("/", Answer(hold=hold))
    jobs = await scene.jobs(await scene.subscription(max_in_flight=1), 2)
    async with scene.working(await scene.worker(SHORT)):

        def too_late() -> list[Notice]:
            return [one for one in told if isinstance(one, JobsGivenBack) and one.reason == "too late"]

        await eventually(too_late, what="the waiting job to be given back")
        assert len(scene.receiver.requests) == 1
        hold.set()
        await scene.finished(jobs)
    assert [(await scene.job(job))["lease_resets"] for job in jobs] == [0, 0]
    assert len(scene.receiver.requests) == 2


async def test_a_deadline_that_does_not_fit_in_the_lease_is_shortened(scene: Scene) -> None:
    """It was written when leases were longer; given back for ever would be worse."""
    scene.receiver.answer("/", Answer(hangs=True))
    (job,) = await scene.jobs(await scene.subscription(timeout_seconds=600))
    async with scene.working(await scene.worker(SHORT)):
        await scene.finished([job])
    row = await scene.job(job)
    assert (row["status"], row["error_code"], row["lease_resets"]) == ("Failed", "timeout", 0)


@pytest.mark.parametrize("claim_hint", [True, False])
async def test_the_hint_changes_nothing_but_the_speed(scene: Scene, claim_hint: bool) -> None:
    """Ruling 16: "once a second it looks without the hint; with hints off everything still works"."""
    subscription = await scene.subscription()
    jobs = await scene.jobs(subscription, 50)
    async with scene.working(await scene.worker(claim_hint=claim_hint)):
        await scene.finished(jobs)
        (older,) = await scene.jobs(subscription, ready_since=3600)
        await scene.finished([older])
    assert len(scene.receiver.requests) == 51


async def test_two_workers_never_send_the_same_lease(scene: Scene) -> None:
    jobs = await scene.jobs(await scene.subscription(), 200)
    async with scene.working(*[await scene.worker(slots=16) for _ in range(3)]):
        await scene.finished(jobs)
    assert len(scene.receiver.requests) == 200
    assert len({request.message for request in scene.receiver.requests}) == 200
    workers = await scene.sql("SELECT DISTINCT worker_id AS w FROM webhook_delivery_jobs")
    assert len(workers) > 1


async def test_one_who_comes_back_under_the_same_name_owns_nothing_of_who_had_it_before(scene: Scene) -> None:
    """Catalogue A11: a name tells people who it was; what proves a lease is its token."""
    hold = asyncio.Event()
    scene.receiver.answer("/", lambda _: Answer(hold=hold) if len(scene.receiver.requests) == 1 else Answer())
    subscription = await scene.subscription()
    (job,) = await scene.jobs(subscription)
    first = await scene.worker()
    await first.step()
    await eventually(lambda: scene.receiver.requests, what="the request")
    before = await scene.job(job)
    scene.workers = 0
    async with scene.working(await scene.worker()):
        others = await scene.jobs(subscription, 3)
        await scene.finished(others)
    # Neither taken over while it worked, nor given back when it stopped.
    assert await scene.job(job) == before
    assert {(await scene.job(one))["worker_id"] for one in (job, *others)} == {"worker1"}
    hold.set()
    await first.close()
    assert (await scene.job(job))["status"] == "Completed"
    assert first.lost_leases == 0


async def test_what_a_blocked_event_loop_kept_back_too_long_is_not_sent_late(scene: Scene, told: list[Notice]) -> None:
    """Catalogue A19: there is no sign of life that could fail; the time that is left is looked at before each send."""
    jobs = await scene.jobs(await scene.subscription(), 2)
    worker = await scene.worker(SHORT, timeout=0.4, margin=0.1)
    await worker.step()
    # Somebody computes; the requests would be made when the loop comes round to them.
    threading.Event().wait(1.6)
    async with scene.working(worker):
        await scene.finished(jobs)
    assert len(scene.receiver.requests) == 2
    assert [(await scene.job(job))["lease_resets"] for job in jobs] == [0, 0]
    assert [one.reason for one in told if isinstance(one, JobsGivenBack)] == ["too late"]


async def test_with_reports_that_are_not_heard_nothing_more_is_leased(
    scene: Scene, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is bounded: what can't be reported should not be sent either."""
    monkeypatch.setattr(worker_module, "MOST_UNHEARD", 20)
    jobs = await scene.jobs(await scene.subscription(), 200)
    engine = await scene.database.open("job_worker", through=proxy, size=3)
    proxy.arm(Fault("worker.report", FREEZE))
    async with scene.working(await scene.worker(slots=16, engine=engine)):
        await proxy.until_fired()
        await eventually(lambda: len(scene.receiver.requests) >= 20, what="some requests")
        await pause(0.5)
        assert len(scene.receiver.requests) < 80
        proxy.thaw()
        await scene.finished(jobs)
    assert len(scene.receiver.requests) == 200
