"""A row that the database refuses is set aside and told; its neighbours go on, and it is tried again later."""

import pytest

from tests.roles.orchestrator.scene import JOBS, LETTERS, POLICY, SAGAS, Scene, fixed
from tests.support.poison import plant, pull_out
from tidings.telemetry.notices import Notice, RowSetAside

pytestmark = pytest.mark.slow


def set_aside(told: list[Notice]) -> list[RowSetAside]:
    return [one for one in told if isinstance(one, RowSetAside)]


async def test_a_job_that_can_not_be_made_stops_nobody_else(damaged: Scene, told: list[Notice]) -> None:
    """It is told once, not at every step, and takes none of its lane's room."""
    subscription = await damaged.subscription()
    await damaged.sagas(subscription, 30)
    bad = await damaged.database.value(f"SELECT MIN(id) FROM {SAGAS}")
    await plant(damaged.database, "INSERT", JOBS, f"NEW.saga_id IN ({bad}, {bad + 7})")
    damaged.orchestrator = await damaged.another(limits=fixed(1, active_jobs_max=1000), seconds_aside=3600)
    for _ in range(31):
        await damaged.step()
        await damaged.finish()
    await damaged.until_idle()
    assert await damaged.by_status() == {"Completed": 28, "Pending": 2}
    assert [one.row for one in set_aside(told)] == [f"saga:{bad}", f"saga:{bad + 7}"]


async def test_who_is_set_aside_is_told_and_tried_again_later(damaged: Scene, told: list[Notice]) -> None:
    await damaged.sagas(await damaged.subscription(), 10)
    bad = await damaged.database.value(f"SELECT MIN(id) FROM {SAGAS}") + 4
    await plant(damaged.database, "INSERT", JOBS, f"NEW.saga_id = {bad}")
    damaged.orchestrator = await damaged.another(seconds_aside=0)
    await damaged.step()
    (aside,) = set_aside(told)
    assert (aside.role, aside.row) == ("orchestrator", f"saga:{bad}")
    assert "poisoned row" in aside.error
    assert await damaged.by_status() == {"InProgress": 9, "Pending": 1}
    await pull_out(damaged.database, JOBS)
    # Behind the hint of its lane: it is found by the next look from the beginning.
    await damaged.until_idle(await damaged.another())
    assert await damaged.by_status() == {"InProgress": 10}


async def test_a_result_that_can_not_be_taken_in_stops_nobody_else(damaged: Scene, told: list[Notice]) -> None:
    await damaged.sagas(await damaged.subscription(), 20)
    await damaged.step()
    bad = await damaged.database.value(f"SELECT MIN(id) FROM {SAGAS}") + 11
    await plant(damaged.database, "UPDATE", SAGAS, f"NEW.id = {bad}")
    await damaged.finish("http_500")
    damaged.orchestrator = await damaged.another(batch=7, seconds_aside=3600)
    for _ in range(4):
        await damaged.step()
    job = await damaged.database.value(f"SELECT id FROM {JOBS} WHERE saga_id = {bad}")
    assert [one.row for one in set_aside(told)] == [f"job:{job}"]
    assert await damaged.by_status() == {"PendingRetry": 19, "InProgress": 1}
    assert await damaged.count(JOBS, "applied_at IS NULL") == 1
    await pull_out(damaged.database, SAGAS)
    await damaged.until_idle(await damaged.another())
    assert await damaged.by_status() == {"PendingRetry": 20}


async def test_a_burial_is_whole_or_did_not_happen(damaged: Scene) -> None:
    """r02 §3.2, phase 7: where the dead letter can't be written, the saga is not dead either; the others are."""
    subscription = await damaged.subscription(max_retry_limit=1)
    sagas = [await damaged.saga(subscription) for _ in range(3)]
    await plant(damaged.database, "INSERT", LETTERS, f"NEW.saga_id = {sagas[1]}")
    await damaged.step()
    await damaged.finish("timeout")
    await damaged.step()
    assert [(await damaged.one(SAGAS, saga))["status"] for saga in sagas] == [
        "DeadLettered",
        "InProgress",
        "DeadLettered",
    ]
    assert [letter["saga_id"] for letter in await damaged.all(LETTERS)] == [sagas[0], sagas[2]]
    assert await damaged.count(JOBS, "applied_at IS NULL") == 1


async def test_a_burial_of_what_is_exhausted_is_whole_too(damaged: Scene) -> None:
    subscription = await damaged.subscription(max_retry_limit=POLICY.max_retry_limit)
    sagas = [
        await damaged.saga(subscription, status="PendingRetry", attempt_count=5, final_error_code="timeout")
        for _ in range(2)
    ]
    await plant(damaged.database, "INSERT", LETTERS, f"NEW.saga_id = {sagas[0]}")
    await damaged.step()
    assert [(await damaged.one(SAGAS, saga))["status"] for saga in sagas] == ["PendingRetry", "DeadLettered"]
    assert await damaged.count(LETTERS) == 1
