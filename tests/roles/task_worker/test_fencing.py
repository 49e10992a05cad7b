"""The fence: a result counts only under the version of its claim (seed 003: 舊 Worker 復活了怎麼辦, ruling 8)."""

import asyncio

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.waiting import eventually
from tidings.roles.task_worker.operations import Fence, TaskWorkerOperations
from tidings.tasks import Fail, Handlers
from tidings.telemetry.notices import Notice, TaskFenceLost, TasksGivenBack


def waiting_for(gate: asyncio.Event, error: Exception | None = None) -> Handlers:
    """A handler of A that ends, well or not, when the gate opens."""
    handlers = Handlers()

    @handlers.task("A")
    async def handle(payload: object) -> None:
        await gate.wait()
        if error:
            raise error

    return handlers


@pytest.mark.parametrize("error", [None, ValueError("boom"), Fail("never")], ids=["success", "failure", "fail"])
async def test_a_late_result_of_a_zombie_changes_nothing_and_is_told(
    scene: Scene, told: list[Notice], error: Exception | None
) -> None:
    """Seed 003: WHERE id = 100 AND version = 5: Affected Rows = 0."""
    (task,) = await scene.submit()
    zombie = await scene.worker(waiting_for(release := asyncio.Event(), error))
    await zombie.step()
    await scene.rescue(task)
    before = await scene.task(task)
    release.set()
    await eventually(lambda: zombie.lost_fences == 1, what="the late result")
    await zombie.close()
    assert await scene.task(task) == before
    (lost,) = [notice for notice in told if isinstance(notice, TaskFenceLost)]
    assert (lost.task_id, lost.worker_id, lost.correlation_id) == (task, "w1", before["correlation_id"])


async def test_a_late_result_does_not_end_the_run_of_another_worker(scene: Scene) -> None:
    (task,) = await scene.submit()
    gates = asyncio.Event(), asyncio.Event()
    first, second = [await scene.worker(waiting_for(gate)) for gate in gates]
    await first.step()
    await scene.rescue(task)
    await second.step()
    gates[0].set()
    await eventually(lambda: first.lost_fences == 1, what="the zombie's result")
    running = await scene.task(task)
    assert (running["status"], running["worker_id"], running["version"]) == (1, "w2", 3)
    gates[1].set()
    await second.close()
    await first.close()
    ended = await scene.task(task)
    assert (ended["status"], ended["version"], ended["retry_count"]) == (2, 4, 1)


async def test_a_sign_of_life_is_a_new_time_and_nothing_else(scene: Scene) -> None:
    """Ruling 8: heartbeat writes `updated_at` only, under the version."""
    ours, foreign = await scene.submit(count=2, status=1)
    (waiting,) = await scene.submit()
    engine = await scene.database.open("task_worker")
    fences = [Fence(ours, 0, 0), Fence(foreign, 7, 0), Fence(waiting, 0, 0)]
    states = [await scene.task(task) for task in (ours, foreign, waiting)]
    assert await TaskWorkerOperations.step(engine, lambda one: one.beat(fences)) == 1
    after = [await scene.task(task) for task in (ours, foreign, waiting)]
    assert after[1:] == states[1:]
    assert after[0].pop("updated_at") > states[0].pop("updated_at")
    assert after[0] == states[0]


async def test_only_what_is_ours_is_given_back_and_as_it_was(scene: Scene) -> None:
    ids = [(await scene.submit(status=1))[0] for _ in range(4)]
    await scene.sql(f"UPDATE sys_pending_tasks SET worker_id = 'me', retry_count = 1 WHERE id <> {ids[3]}")
    engine = await scene.database.open("task_worker")
    fences = [Fence(ids[0], 0, 0), Fence(ids[1], 0, 3), Fence(ids[2], 9, 0), Fence(ids[3], 0, 0)]
    assert await TaskWorkerOperations.step(engine, lambda one: one.give_back(fences, "me")) == 2
    rows = [await scene.task(id) for id in ids]
    assert [(row["status"], row["version"], row["retry_count"]) for row in rows] == [
        (0, 1, 1),
        (3, 1, 1),
        (1, 0, 1),
        (1, 0, 0),
    ]


async def test_a_worker_that_stops_waits_for_its_handlers_and_gives_back_what_it_has_not_begun(
    scene: Scene, told: list[Notice]
) -> None:
    """Uncounted, and free for others at once."""
    quick = await scene.submit("A", 40)
    handlers, release, ran = Handlers(), asyncio.Event(), 0

    @handlers.task("A", concurrency=2)
    async def handle(payload: object) -> None:
        nonlocal ran
        ran += 1
        await release.wait()

    worker = await scene.worker(handlers)
    worker._hands._pace["A"] = 0.001  # quick, as far as it knows: it claims ahead
    await worker.step()
    await eventually(lambda: worker.in_flight == 2, what="the first two to begin")
    assert await scene.statuses() == {1: 40}
    closing = asyncio.create_task(worker.close())
    await eventually(lambda: any(isinstance(one, TasksGivenBack) for one in told), what="the rest to be given back")
    assert await scene.statuses() == {0: 38, 1: 2}
    release.set()
    await closing
    assert (ran, await scene.statuses()) == (2, {0: 38, 2: 2})
    rows = [await scene.task(task) for task in quick[2:4]]
    assert [(row["retry_count"], row["version"], row["worker_id"], row["result_msg"]) for row in rows] == [
        (0, 2, None, None)
    ] * 2


async def test_a_handler_that_does_not_end_within_the_grace_counts_as_a_failed_try(scene: Scene) -> None:
    """It was begun: ruling 8 allows max_retries + 1 runs, whoever ended them."""
    (task,) = await scene.submit()
    worker = await scene.worker(waiting_for(asyncio.Event()), grace=0.1)
    await worker.step()
    await eventually(lambda: worker.in_flight == 1, what="it to begin")
    await worker.close()
    row = await scene.task(task)
    assert (row["status"], row["retry_count"]) == (3, 1)
    assert row["result_msg"] == "The worker was stopped before the handler ended"


async def test_another_role_with_the_same_rights_on_tasks_works_by_the_same_worker(scene: Scene) -> None:
    (task,) = await scene.submit("subscription.verify")
    handlers = Handlers()

    @handlers.task("subscription.verify")
    async def handle(payload: object) -> None: ...

    await scene.work_off(await scene.worker(handlers, role="subscription_verifier"))
    assert (await scene.task(task))["status"] == 2
