"""Claim, rescue and archive at once under load, workers killed at random: one place and one outcome for each task."""

import asyncio
import random
from functools import partial

import pytest

from tests.scenarios.tasks.stage import TaskStage
from tests.support.waiting import eventually, pause
from tidings.roles.archiver.archiver import Archiver
from tidings.roles.rescuer.rescuer import Rescuer

KILLS = 6


@pytest.mark.slow
@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
async def test_every_task_ends_in_exactly_one_place_with_one_outcome(stage: TaskStage, count: int) -> None:
    """Issue 7, proofs. No task is lost, none ends twice, none runs more often than its retries say."""
    chance = random.Random(count)
    tasks = await stage.submit("SHORT", count, max_retries=50)
    rescuer = Rescuer(await stage.database.open("task_rescuer"), 2, every=0.1, patience=0)
    archiver = Archiver(await stage.database.open("task_archiver"), 0, batch=50)
    workers = [stage.run("task-worker", f"w{number}", TIDINGS_TASK_SLOTS="8") for number in range(2)]

    async def all_are_archived() -> bool:
        await rescuer.step()
        await archiver.step()
        rows = await stage.sql("SELECT COUNT(*) AS tasks FROM sys_pending_tasks")
        return not rows[0]["tasks"]

    def have_begun_more_than(before: int) -> bool:
        return len(stage.begun()) > before

    async def kill_some() -> None:
        for number in range(KILLS):
            await eventually(partial(have_begun_more_than, len(stage.begun())), 20, "somebody to work")
            await pause(chance.uniform(0, 0.2))
            which = chance.randrange(len(workers))
            workers[which].kill()
            workers[which] = stage.run("task-worker", f"v{number}", TIDINGS_TASK_SLOTS="8")

    killing = asyncio.create_task(kill_some())
    await eventually(all_are_archived, 120 if count < 1000 else 500, "all tasks to end")
    killing.cancel()
    await asyncio.gather(killing, return_exceptions=True)
    rows = await stage.sql("SELECT id, status, retry_count, result_msg FROM sys_pending_tasks_history ORDER BY id")
    assert [row["id"] for row in rows] == tasks
    assert {(row["status"], row["result_msg"]) for row in rows} == {(2, "OK")}
    runs = stage.runs()
    wrong = [row["id"] for row in rows if not 1 <= runs[row["id"]] <= row["retry_count"] + 1]
    assert wrong == []
