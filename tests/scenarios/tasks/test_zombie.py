"""The seed's own story, with real processes: A is frozen past the timeout, rescued, B runs, A returns (seed 003)."""

import signal

import pytest

from tests.scenarios.tasks.stage import TaskStage
from tests.support.waiting import eventually
from tidings.roles.rescuer.rescuer import Rescuer

pytestmark = pytest.mark.slow


async def test_a_frozen_worker_that_returns_finds_its_task_ended_by_another(stage: TaskStage) -> None:
    """Seed 003, 場景 1–4: the database keeps A's result out, because the version has changed."""
    (task,) = await stage.submit("WAIT")
    a = stage.run("task-worker", "a")
    stage.until_begun(("a", task, 1))
    claimed = await stage.task(task)
    assert (claimed["status"], claimed["version"]) == (1, 1)

    a.freeze()
    await stage.grow_silent(task)
    rescuer = stage.run("rescuer", TIDINGS_RESCUE_EVERY="100ms")

    async def is_rescued() -> bool:
        return bool((await stage.task(task))["status"] == 3)

    await eventually(is_rescued, 30, "the rescue")
    rescued = await stage.task(task)
    assert (rescued["version"], rescued["retry_count"]) == (2, 1)
    assert rescued["result_msg"] == "Task timed out (Worker crashed?)"

    b = stage.run("task-worker", "b")
    stage.until_begun(("a", task, 1), ("b", task, 2))
    assert (await stage.task(task))["version"] == 3

    a.thaw()
    stage.release("a")
    a.wait_for_line("result of a task came too late", 30)
    running = await stage.task(task)
    assert (running["status"], running["version"]) == (1, 3)
    assert running["worker_id"] != claimed["worker_id"]

    stage.release("b")

    async def has_ended() -> bool:
        return bool((await stage.task(task))["status"] == 2)

    await eventually(has_ended, 30, "B's result")
    for process in (a, b, rescuer):
        process.terminate()
        assert process.wait(30) == 0
    ended = await stage.task(task)
    assert (ended["version"], ended["retry_count"], ended["result_msg"]) == (4, 1, "OK")
    assert stage.begun() == [("a", task, 1), ("b", task, 2)]


async def test_a_poisonous_task_kills_max_retries_and_one_worker_and_no_more(stage: TaskStage) -> None:
    """Seed 003: 毒丸數據; ruling 8: at most max_retries + 1 runs, then status 4."""
    (task,) = await stage.submit("POISON", max_retries=2)
    rescuer = Rescuer(await stage.database.open("task_rescuer"), 600, every=0, patience=0)
    crashes = 0
    while (await stage.task(task))["status"] in (0, 3):
        worker = stage.run("task-worker", f"w{crashes}")
        assert worker.wait(30) == -signal.SIGABRT
        crashes += 1
        await stage.grow_silent(task)
        assert (await rescuer.step()).tasks == 1
    assert crashes == 3
    row = await stage.task(task)
    assert (row["status"], row["retry_count"]) == (4, 2)
    assert row["result_msg"] == "Max retries exceeded: Task timed out (Worker crashed?)"
    assert [attempt for _, _, attempt in stage.begun()] == [1, 2, 3]


async def test_a_worker_that_is_told_to_stop_lets_its_handlers_end(stage: TaskStage) -> None:
    (task,) = await stage.submit("WAIT")
    # With a single slot, so that nothing else begins in the moment before it hears of it.
    worker = stage.run("task-worker", "a", TIDINGS_TASK_SLOTS="1")
    stage.until_begun(("a", task, 1))
    worker.terminate()
    (later,) = await stage.submit("WAIT")
    stage.release("a")
    assert worker.wait(30) == 0
    assert ((await stage.task(task))["status"], (await stage.task(later))["status"]) == (2, 0)
