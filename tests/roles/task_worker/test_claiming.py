"""Claiming: by version, in order, each task once, and nothing that is not due or not handled (seed 003, ruling 8)."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.waiting import eventually
from tidings.decisions.claiming import Lane, Stretch
from tidings.roles.task_worker.claiming import Claimer
from tidings.roles.task_worker.operations import Fence, TaskWorkerOperations
from tidings.tasks import Handlers, TaskContext
from tidings.telemetry.notices import Notice, TasksClaimed


def recording() -> tuple[Handlers, list[int]]:
    """A handler of A that writes down which tasks it got."""
    handlers, ran = Handlers(), list[int]()

    @handlers.task("A")
    async def handle(payload: object, context: TaskContext) -> None:
        ran.append(context.id)

    return handlers, ran


async def test_a_claimed_task_is_marked_for_everyone_to_see(scene: Scene) -> None:
    """Seed 003 第二步: status = 1, version + 1; and whose it is."""
    (task,) = await scene.submit()
    handlers, release = Handlers(), asyncio.Event()

    @handlers.task("A")
    async def handle(payload: object) -> None:
        await release.wait()

    before = await scene.task(task)
    worker = await scene.worker(handlers)
    async with scene.working(worker):
        await eventually(lambda: worker.in_flight == 1, what="the handler to begin")
        running = await scene.task(task)
        release.set()
    assert (running["status"], running["version"], running["worker_id"]) == (1, 1, "w1")
    assert running["updated_at"] > before["updated_at"]
    assert (await scene.task(task))["status"] == 2


async def test_tasks_run_by_priority_then_due_time_then_id(scene: Scene) -> None:
    """Seed 003; a small number comes first."""
    late_low = await scene.submit(count=2, priority=20, due_since=50)
    young_high = await scene.submit(count=2, priority=1, due_since=5)
    old_high = await scene.submit(count=1, priority=1, due_since=500)
    normal = await scene.submit(count=3)
    handlers, ran = recording()
    await scene.work_off(await scene.worker(handlers, slots=1, concurrency=1))
    assert ran == [*old_high, *young_high, *normal, *late_low]


async def test_negative_priorities_come_before_all_others(scene: Scene) -> None:
    ids = {priority: (await scene.submit(priority=priority))[0] for priority in (0, 127, -128, -1, 1)}
    handlers, ran = recording()
    await scene.work_off(await scene.worker(handlers, slots=1, concurrency=1))
    assert ran == [ids[priority] for priority in sorted(ids)]


async def test_what_is_not_due_yet_is_left_and_hides_nothing_behind_it(scene: Scene) -> None:
    """Seed 003: next_run_time <= NOW()."""
    future = await scene.submit(count=5, priority=1, due_since=-3600)
    retried_later = await scene.submit(count=5, priority=2, due_since=-3600, status=3)
    due = await scene.submit(count=3, priority=9)
    handlers, ran = recording()
    await scene.work_off(await scene.worker(handlers))
    assert sorted(ran) == due
    for task in (*future, *retried_later):
        assert (await scene.task(task))["version"] == 0


async def test_failed_tasks_whose_time_has_come_are_claimed_directly(scene: Scene) -> None:
    """Seed 003: the worker may ask for PENDING and FAIL_RETRY; ruling 8."""
    (task,) = await scene.submit(status=3, retry_count=1)
    handlers, ran = recording()
    await scene.work_off(await scene.worker(handlers))
    assert ran == [task]


@pytest.mark.parametrize("status", [1, 2, 4])
async def test_what_runs_or_has_ended_is_not_claimed(scene: Scene, status: int) -> None:
    (task,) = await scene.submit(status=status)
    handlers, ran = recording()
    worker = await scene.worker(handlers)
    assert not await worker.step()
    await worker.close()
    assert ran == []
    assert (await scene.task(task))["status"] == status


async def test_a_type_that_nobody_handles_is_left_alone(scene: Scene) -> None:
    (foreign,) = await scene.submit("B", priority=0)
    (ours,) = await scene.submit("A")
    handlers, ran = recording()
    worker = await scene.worker(handlers)
    async with scene.working(worker):
        await eventually(lambda: ran == [ours], what="our task")
    row = await scene.task(foreign)
    assert (row["status"], row["version"], row["worker_id"]) == (0, 0, None)


async def test_a_priority_that_was_never_seen_before_is_noticed_at_once(scene: Scene) -> None:
    engine = await scene.database.open("task_worker")
    claimer = Claimer(engine, "w")
    for priority in (5, 9, 7, 3, 8):
        (task,) = await scene.submit(priority=priority)
        claim = await claimer.claim({"A": 10}, 10)
        assert [one.id for one in claim.tasks] == [task]


@pytest.mark.parametrize("soon", [True, False], ids=["in_a_second", "when_nothing_else_is_due"])
async def test_what_was_given_back_is_claimed_again_though_others_were_claimed_behind_it(
    scene: Scene, soon: bool
) -> None:
    """A claim goes on behind the last one, and looks at everything once a second or when it finds nothing there."""
    (first, second, third) = await scene.submit(count=3)
    engine = await scene.database.open("task_worker")
    claimer = Claimer(engine, "me")

    async def claimed() -> list[int]:
        return [task.id for task in (await claimer.claim({"A": 1}, 1)).tasks]

    assert await claimed() == [first]
    assert await claimed() == [second]
    await TaskWorkerOperations.step(engine, lambda one: one.give_back([Fence(first, 1, 0)], "me"))
    if soon:
        claimer._swept_at -= 1
    found = await claimed() + await claimed()
    assert (found if soon else sorted(found)) == [first, third]


async def test_of_two_that_read_the_same_candidates_one_gets_each(scene: Scene) -> None:
    """Seed 003: Affected Rows = 0 means that another was quicker."""
    tasks = await scene.submit(count=4)
    engine = await scene.database.open("task_worker")
    lanes = [Lane("A", 10, 10)]

    async def read(operations: TaskWorkerOperations) -> Any:
        assert [head.priority for head in await operations.heads([Stretch("A", 0, 20)])] == [10]
        return await operations.candidates(lanes, only_free=False)

    mine = await TaskWorkerOperations.step(engine, read)
    theirs = await TaskWorkerOperations.step(engine, read)
    first = await TaskWorkerOperations.step(engine, lambda one: one.claim(mine[:3], "me"))
    second = await TaskWorkerOperations.step(engine, lambda one: one.claim(theirs, "them"))
    assert sorted(task.id for task in first) == tasks[:3]
    assert [task.id for task in second] == tasks[3:]
    assert await TaskWorkerOperations.step(engine, lambda one: one.claim(theirs, "late")) == []
    rows = [await scene.task(task) for task in tasks]
    assert [(row["worker_id"], row["version"]) for row in rows] == [*[("me", 1)] * 3, ("them", 1)]


async def test_who_lost_a_race_passes_over_what_others_are_claiming(scene: Scene) -> None:
    tasks = await scene.submit(count=6)
    engine = await scene.database.open("task_worker", size=3)
    lanes = [Lane("A", 10, 3)]
    async with engine.transaction() as transaction:
        mine = await TaskWorkerOperations(transaction, engine.dialect).candidates(lanes, only_free=True)
        others = await TaskWorkerOperations.step(engine, lambda one: one.candidates(lanes, only_free=True))
    assert [one.id for one in mine] == tasks[:3]
    assert [one.id for one in others] == tasks[3:]


async def test_a_type_never_runs_more_at_once_than_it_allows_and_others_go_on(scene: Scene) -> None:
    await scene.submit("SLOW", 20, priority=1)
    await scene.submit("QUICK", 20)
    handlers, release, running, most, done = Handlers(), asyncio.Event(), 0, 0, 0

    @handlers.task("SLOW", concurrency=3)
    async def slow(payload: object) -> None:
        nonlocal running, most, done
        running += 1
        most = max(most, running)
        await release.wait()
        running -= 1
        done += 1

    @handlers.task("QUICK")
    async def quick(payload: object) -> None: ...

    async def quick_ones_are_stored() -> bool:
        return await scene.statuses() == {0: 17, 1: 3, 2: 20}

    worker = await scene.worker(handlers, slots=10)
    async with scene.working(worker):
        await eventually(quick_ones_are_stored, what="the quick ones")
        assert running == 3
        release.set()
        await eventually(lambda: done == 20, what="the slow ones")
    assert most == 3


async def test_slots_are_kept_full_and_never_passed(scene: Scene) -> None:
    await scene.submit(count=40)
    handlers, gates, begun, most = Handlers(), list[asyncio.Event](), 0, 0

    @handlers.task("A")
    async def handle(payload: object) -> None:
        nonlocal begun, most
        begun += 1
        gate = asyncio.Event()
        gates.append(gate)
        most = max(most, len(gates))
        await gate.wait()
        gates.remove(gate)

    def has_begun(count: int) -> bool:
        return begun == count

    worker = await scene.worker(handlers, slots=8)
    async with scene.working(worker):
        await eventually(lambda: len(gates) == 8, what="full slots")
        for number in range(1, 33):
            gates[0].set()
            await eventually(partial(has_begun, 8 + number), what="a freed slot to be filled")
        for gate in [*gates]:
            gate.set()
    assert most == 8
    assert (await scene.statuses()) == {2: 40}


async def test_four_workers_run_each_task_once(scene: Scene, told: list[Notice]) -> None:
    tasks = await scene.submit(count=600)
    handlers, ran = recording()
    workers = [await scene.worker(handlers, slots=20) for _ in range(4)]
    await scene.work_off(*workers)
    assert sorted(ran) == tasks
    assert await scene.statuses() == {2: 600}
    rows = await scene.sql("SELECT DISTINCT version, retry_count, result_msg FROM sys_pending_tasks")
    assert [tuple(row.values()) for row in rows] == [(2, 0, "OK")]
    claims = [notice for notice in told if isinstance(notice, TasksClaimed)]
    assert sum(claim.tasks for claim in claims) == 600


@pytest.mark.slow
async def test_eight_claimers_lose_few_races_and_leave_nothing(scene: Scene) -> None:
    await scene.submit(count=4000)
    engines = [await scene.database.open("task_worker") for _ in range(8)]
    claimers = [Claimer(engine, f"c{number}") for number, engine in enumerate(engines)]
    for claimer in claimers:
        claimer._wary = 0  # as if each had been alone for long

    async def claim_all(claimer: Claimer) -> tuple[list[int], int]:
        got, lost = list[int](), 0
        while (claim := await claimer.claim({"A": 25}, 25)).tasks or claim.lost:
            got += [task.id for task in claim.tasks]
            lost += claim.lost
        return got, lost

    found = await asyncio.gather(*map(claim_all, claimers))
    claimed = [task for got, _ in found for task in got]
    # What another held when one looked for the last time is found by those who look again.
    rest, _ = await claim_all(claimers[0])
    assert len({*claimed, *rest}) == len(claimed) + len(rest) == 4000
    lost = sum(lost for _, lost in found)
    assert lost <= 0.1 * (4000 + lost), f"{lost} races lost"
