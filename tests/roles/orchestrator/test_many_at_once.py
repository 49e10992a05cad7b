"""Any number of orchestrators at once: each saga gets one job, each result is taken in once."""

import asyncio

import pytest

from tests.roles.orchestrator.scene import JOBS, LETTERS, SAGAS, Scene
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.retrying import Backoff
from tidings.roles.orchestrator.orchestrator import Advanced, Orchestrator

pytestmark = pytest.mark.slow

MANY = 4


async def together(scene: Scene, *orchestrators: Orchestrator, until: str) -> list[Advanced]:
    """All of them, each until nothing is left that the others could not take; returns what every step did."""
    done: list[Advanced] = []

    async def work(one: Orchestrator) -> None:
        while True:
            done.append(step := await one.step())
            if not step.did_work and await scene.count(SAGAS, until) == 0:
                return

    await asyncio.gather(*map(work, orchestrators))
    return done


async def test_five_thousand_sagas_get_one_job_each(scene: Scene) -> None:
    """r01 §7.1, r02 §2.1: nobody creates a second one, and nobody trips over the other."""
    for subscription in await scene.subscriptions(5):
        await scene.sagas(subscription, 1_000)
    orchestrators = [await scene.another(batch=200) for _ in range(MANY)]
    done = await together(scene, *orchestrators, until="status = 'Pending'")
    assert sum(step.started for step in done) == 5_000
    assert await scene.by_status() == {"InProgress": 5_000}
    assert await scene.by_status(JOBS) == {"Pending": 5_000}
    assert await scene.database.value(f"SELECT COUNT(DISTINCT saga_id) FROM {JOBS}") == 5_000
    assert await scene.count(f"{JOBS} j JOIN {SAGAS} s ON s.id = j.saga_id", "j.attempt_at <> s.next_attempt_at") == 0


async def test_two_thousand_results_are_taken_in_once_each(scene: Scene) -> None:
    """r01 §2.3 and §6.4: half of them went well, the others are tried once more, or are buried."""
    policy = RetryPolicy(2, Backoff(3600, 3600, 0))
    for subscription in await scene.subscriptions(4):
        await scene.sagas(subscription, 500)
    scene.orchestrator = await scene.another(policy)
    await scene.until_idle()
    await scene.sql(f"UPDATE {SAGAS} SET attempt_count = 1 WHERE MOD(id, 4) = 0")
    await scene.finish("http_500", where="MOD(saga_id, 2) = 0")
    await scene.finish()
    orchestrators = [await scene.another(policy, batch=100) for _ in range(MANY)]
    done = await together(scene, *orchestrators, until="status = 'InProgress'")
    assert [
        sum(counts) for counts in zip(*((s.completed, s.retried, s.buried, s.ignored) for s in done), strict=True)
    ] == [
        1_000,
        500,
        500,
        0,
    ]
    rows = await scene.sql(
        f"SELECT status, attempt_count, COUNT(*) AS count FROM {SAGAS} GROUP BY status, attempt_count ORDER BY status"
    )
    assert {(row["status"], row["attempt_count"]): row["count"] for row in rows} == {
        ("Completed", 1): 1_000,
        ("DeadLettered", 2): 500,
        ("PendingRetry", 1): 500,
    }
    assert await scene.count(LETTERS) == 500
    assert await scene.count(JOBS, "applied_at IS NULL") == 0
