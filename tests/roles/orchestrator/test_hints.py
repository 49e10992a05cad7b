"""Hints where to begin looking make nothing be missed: what appears late, behind them, is found within a second."""

import datetime

import pytest

from tests.roles.orchestrator.scene import JOBS, SAGAS, Scene, fixed
from tests.support.sessions import connect
from tests.support.waiting import eventually
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.retrying import Backoff
from tidings.roles.orchestrator import hints as hints_module

pytestmark = pytest.mark.slow


async def test_a_saga_that_appears_late_with_an_old_time_is_started_within_a_second(scene: Scene) -> None:
    """As one does whose router was long in committing, or which a restored clock has dated."""
    assert hints_module.SECONDS_BETWEEN_SWEEPS <= 1
    subscription = await scene.subscription()
    await scene.saga(subscription)
    await scene.step()
    late = [
        await scene.saga(subscription, next_attempt_at="2020-01-01"),
        await scene.saga(subscription, status="PendingRetry", attempt_count=1, next_attempt_at="2020-01-01"),
    ]

    async def are_started() -> bool:
        await scene.step()
        return await scene.count(SAGAS, "status = 'InProgress'") == 1 + len(late)

    await eventually(are_started, what="them to be started")


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
        return bool((await scene.one(SAGAS, slow))["status"] == "Completed")

    await eventually(is_taken_in, what="the result to be taken in")


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


@pytest.fixture
async def hinted(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Two lanes that are known to be empty; an orchestrator that never again looks from the beginning, nor twice."""
    await scene.subscriptions(2)
    monkeypatch.setattr(hints_module, "SLACK_OF_NEWS", datetime.timedelta(0))
    monkeypatch.setattr(hints_module, "SECONDS_BETWEEN_SWEEPS", 3600.0)
    await scene.step()
    return scene


async def test_news_of_a_lane_that_was_paused_are_not_forgotten(hinted: Scene) -> None:
    await hinted.sql("UPDATE subscriptions SET paused = true WHERE id = 1")
    for subscription in (1, 2):
        await hinted.sagas(subscription, 3)
    await hinted.step()
    assert await hinted.by_status() == {"InProgress": 3, "Pending": 3}
    await hinted.step()
    await hinted.step()
    await hinted.sql("UPDATE subscriptions SET paused = false WHERE id = 1")
    await hinted.step()
    assert await hinted.by_status() == {"InProgress": 6}


async def test_news_that_a_window_is_too_small_for_follow_as_it_has_room(hinted: Scene) -> None:
    hinted.orchestrator = await hinted.another(limits=fixed(2))
    await hinted.step()
    await hinted.sagas(1, 7)
    for under_way in (2, 2, 2, 1, 0):
        await hinted.step()
        assert await hinted.count(JOBS, "status = 'Pending'") == under_way
        await hinted.finish()
    assert await hinted.by_status() == {"Completed": 7}


async def test_of_more_news_than_one_look_takes_none_is_forgotten(hinted: Scene) -> None:
    hinted.orchestrator = await hinted.another(batch=4)
    await hinted.step()
    for _ in range(5):
        for subscription in (1, 2):
            await hinted.sagas(subscription, 1)
    await hinted.until_idle()
    assert await hinted.by_status() == {"InProgress": 10}


async def test_a_retry_is_news_when_its_time_comes(hinted: Scene) -> None:
    hinted.orchestrator = await hinted.another(RetryPolicy(9, Backoff(0.5, 0.5, 0)))
    await hinted.step()
    await hinted.sagas(1, 3)
    await hinted.step()
    await hinted.finish("timeout")
    await hinted.step()
    assert await hinted.by_status() == {"PendingRetry": 3}

    async def are_started() -> bool:
        await hinted.step()
        return await hinted.by_status() == {"InProgress": 3}

    await eventually(are_started, what="them to be started")


async def test_news_that_another_is_starting_are_left_to_it_and_not_forgotten(hinted: Scene) -> None:
    """It dies before its commit."""
    await hinted.sagas(1, 3)
    other = await connect(hinted.database.url("saga_orchestrator"))
    await other.run("BEGIN")
    await other.run(f"SELECT id FROM {SAGAS} WHERE status = 'Pending' FOR UPDATE")
    await hinted.step()
    assert await hinted.by_status() == {"Pending": 3}
    await hinted.step()
    await hinted.step()
    await other.close()

    async def are_started() -> bool:
        await hinted.step()
        return await hinted.by_status() == {"InProgress": 3}

    await eventually(are_started, what="them to be started")


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
