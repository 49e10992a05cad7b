"""The rescuer: a task of a silent worker is taken back as a consumed retry, once (seed 003: 救援任務, ruling 8)."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.database import Database
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tidings.roles.rescuer.rescuer import Rescued, Rescuer
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice, TaskGivenUp, TaskRescued

TEN_MINUTES = 600.0


@pytest.fixture
def scene(engine: Database) -> Scene:
    return Scene(engine)


@pytest.fixture
def told() -> Iterator[list[Notice]]:
    heard: list[Notice] = []
    with listening(heard.append, TaskRescued, TaskGivenUp):
        yield heard


async def rescuer(scene: Scene, through: FaultProxy | None = None, **options: Any) -> Rescuer:
    given = {"every": 0.0, "patience": 0.0, **options}
    return Rescuer(await scene.database.open("task_rescuer", through), TEN_MINUTES, **given)


async def test_a_silent_task_is_tried_again_at_once_and_has_used_up_a_retry(scene: Scene, told: list[Notice]) -> None:
    """Seed 003: status 3, retry_count + 1, version + 1, next_run_time now, the seed's own words."""
    (task,) = await scene.submit(status=1, retry_count=1, version=5, due_since=9000)
    await scene.sql("UPDATE sys_pending_tasks SET worker_id = 'dead'")
    await scene.grow_silent(task, seconds=601)
    before = await scene.task(task)
    assert await (await rescuer(scene)).step() == Rescued(1, 0)
    row = await scene.task(task)
    assert (row["status"], row["retry_count"], row["version"]) == (3, 2, 6)
    assert row["result_msg"] == "Task timed out (Worker crashed?)"
    assert row["next_run_time"] == row["updated_at"] > before["updated_at"]
    (notice,) = told
    assert isinstance(notice, TaskRescued)
    assert (notice.task_id, notice.worker_id, notice.correlation_id) == (task, "dead", row["correlation_id"])


async def test_without_a_retry_left_it_has_failed_for_good(scene: Scene, told: list[Notice]) -> None:
    """Ruling 8: a rescue at retry_count = max_retries goes to 4."""
    (task,) = await scene.submit(status=1, retry_count=3, version=5)
    await scene.grow_silent(task)
    assert await (await rescuer(scene)).step() == Rescued(1, 1)
    row = await scene.task(task)
    assert (row["status"], row["retry_count"], row["version"]) == (4, 3, 6)
    assert row["result_msg"] == "Max retries exceeded: Task timed out (Worker crashed?)"
    assert [type(notice) for notice in told] == [TaskGivenUp]


async def test_a_sign_of_life_keeps_a_task_from_being_rescued(scene: Scene) -> None:
    (task,) = await scene.submit(status=1)
    await scene.grow_silent(task, seconds=590)
    assert await (await rescuer(scene)).step() == Rescued()
    assert (await scene.task(task))["status"] == 1


@pytest.mark.parametrize("status", [0, 2, 3, 4])
async def test_only_running_tasks_are_rescued(scene: Scene, status: int) -> None:
    (task,) = await scene.submit(status=0)
    await scene.grow_silent(task)
    await scene.sql(f"UPDATE sys_pending_tasks SET status = {status}")
    before = await scene.task(task)
    await (await rescuer(scene)).step()
    assert await scene.task(task) == before


async def test_a_type_may_have_a_timeout_of_its_own(scene: Scene) -> None:
    (short,), (long,), (usual,) = [await scene.submit(kind, status=1) for kind in ("SHORT", "LONG", "USUAL")]
    await scene.grow_silent(short, long, usual, seconds=700)
    one = await rescuer(scene, of_types={"SHORT": 60, "LONG": 3600, "SAME": 600})
    assert (await one.step()).tasks == 2
    assert [(await scene.task(task))["status"] for task in (short, long, usual)] == [3, 1, 3]
    (young,) = await scene.submit("SHORT", status=1)
    await scene.grow_silent(young, seconds=61)
    assert (await one.step()).tasks == 1


async def test_any_number_of_rescuers_rescue_each_task_once(scene: Scene, told: list[Notice]) -> None:
    tasks = await scene.submit(count=300, status=1, version=1)
    await scene.grow_silent(*tasks)
    rescuers = [await rescuer(scene, batch=40) for _ in range(5)]

    async def rescue_all(one: Rescuer) -> int:
        found = 0
        while done := (await one.step()).tasks:
            found += done
        return found

    assert sum(await asyncio.gather(*map(rescue_all, rescuers))) == 300
    rows = await scene.sql("SELECT DISTINCT status, retry_count, version FROM sys_pending_tasks")
    assert [tuple(row.values()) for row in rows] == [(3, 1, 2)]
    assert len(told) == 300


async def test_it_comes_round_every_so_often_and_not_in_between(scene: Scene) -> None:
    one = await rescuer(scene, every=3600)
    await one.step()
    (task,) = await scene.submit(status=1)
    await scene.grow_silent(task)
    assert await one.step() == Rescued()
    assert (await scene.task(task))["status"] == 1


async def test_it_lets_workers_speak_first_after_it_connected(scene: Scene) -> None:
    (task,) = await scene.submit(status=1)
    await scene.grow_silent(task)
    one = await rescuer(scene, patience=3600)
    assert await one.step() == Rescued()
    assert await one.step() == Rescued()
    assert (await scene.task(task))["status"] == 1


@pytest.mark.parametrize("statement", ["task_rescuer.begin", "rescuer.silent_tasks"])
async def test_it_lets_workers_speak_first_when_the_database_comes_back(
    scene: Scene, proxy: FaultProxy, statement: str
) -> None:
    one = await rescuer(scene, through=proxy, patience=3600)
    one._engine.connected_at -= 7200
    (task,) = await scene.submit(status=1)
    await scene.grow_silent(task)
    proxy.arm(Fault(statement, CUT))
    assert await one.step() == Rescued()
    assert len(proxy.fired) == 1
    assert (await scene.task(task))["status"] == 1
