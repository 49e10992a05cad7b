"""Hints where to begin looking make nothing be missed: what appears late, behind them, is found within a second."""

import time

import pytest

from tests.roles.orchestrator.scene import JOBS, SAGAS, Scene
from tests.support.waiting import eventually
from tidings.roles.orchestrator import hints as hints_module

pytestmark = pytest.mark.slow


async def test_a_saga_that_appears_late_with_an_old_time_is_started_within_a_second(scene: Scene) -> None:
    """As one does whose router was long in committing, or which a restored clock has dated."""
    subscription = await scene.subscription()
    await scene.saga(subscription)
    await scene.step()
    late = [
        await scene.saga(subscription, next_attempt_at="2020-01-01"),
        await scene.saga(subscription, status="PendingRetry", attempt_count=1, next_attempt_at="2020-01-01"),
    ]
    started = time.monotonic()

    async def are_started() -> bool:
        await scene.step()
        return await scene.count(SAGAS, "status = 'InProgress'") == 1 + len(late)

    await eventually(are_started, timeout=5)
    assert time.monotonic() - started < 3


async def test_the_result_of_an_old_job_that_comes_late_is_taken_in_within_a_second(scene: Scene) -> None:
    """A slow endpoint answers after thousands of younger jobs have been taken in."""
    subscription = await scene.subscription()
    slow = await scene.saga(subscription)
    await scene.step()
    await scene.sagas(subscription, 50)
    await scene.step()
    await scene.finish(where=f"saga_id <> {slow}")
    await scene.step()
    await scene.finish()

    async def is_taken_in() -> bool:
        await scene.step()
        return (await scene.one(SAGAS, slow))["status"] == "Completed"

    await eventually(is_taken_in, timeout=5)


async def test_without_hints_everything_works_the_same(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step looks from the beginning."""
    monkeypatch.setattr(hints_module, "SECONDS_BETWEEN_SWEEPS", 0.0)
    monkeypatch.setattr(hints_module, "_PART_FOR_SWEEPS", float("inf"))
    await _three_rounds(scene)


async def test_with_hints_alone_a_steady_flow_is_served_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the look from the beginning unless something came out of its order."""
    await scene.step()
    monkeypatch.setattr(hints_module, "SECONDS_BETWEEN_SWEEPS", 3600.0)
    await scene.step()
    await _three_rounds(scene)


async def _three_rounds(scene: Scene) -> None:
    subscriptions = await scene.subscriptions(2)
    for round in range(1, 4):
        for subscription in subscriptions:
            await scene.sagas(subscription, 10)
        await scene.step()
        assert await scene.count(JOBS, "status = 'Pending'") == 20
        await scene.finish()
        await scene.step()
        assert await scene.by_status() == {"Completed": 20 * round}
