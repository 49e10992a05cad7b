"""How much may be under way, and who gets it: windows, the limit of all, and lanes in turn."""

import pytest

from tests.roles.orchestrator.scene import JOBS, SAGAS, Scene, fixed
from tests.support.waiting import eventually
from tidings.decisions.pacing import LANES_AT_ONCE

ACTIVE = "status IN ('Pending', 'Leased')"


async def test_a_subscription_has_no_more_under_way_than_its_window(scene: Scene) -> None:
    subscription, other = await scene.subscriptions(2)
    await scene.sagas(subscription, 40)
    await scene.sagas(other, 3)
    one = await scene.another(limits=fixed(10, active_jobs_max=100))
    await scene.until_idle(one)
    assert await scene.count(JOBS, f"subscription_id = {subscription}") == 10
    assert await scene.count(JOBS, f"subscription_id = {other}") == 3
    await scene.finish(where=f"subscription_id = {subscription} AND MOD(id, 2) = 0")
    assert (await one.step()).started == 5
    assert await scene.count(JOBS, f"subscription_id = {subscription} AND {ACTIVE}") == 10


async def test_all_together_have_no_more_under_way_than_the_limit(scene: Scene) -> None:
    for subscription in await scene.subscriptions(3):
        await scene.sagas(subscription, 20)
    one = await scene.another(limits=fixed(1000, active_jobs_max=30))
    await scene.until_idle(one)
    assert await scene.count(JOBS) == 30
    rows = await scene.sql(f"SELECT COUNT(*) AS count FROM {JOBS} GROUP BY subscription_id")
    assert [row["count"] for row in rows] == [10, 10, 10]


async def test_what_others_have_started_counts_too(scene: Scene) -> None:
    """Soft by one batch: whoever has not counted lately may start one too many of them."""
    await scene.sagas(await scene.subscription(), 60)
    limits = fixed(1000, active_jobs_max=20)
    for _ in range(3):
        await scene.until_idle(await scene.another(limits=limits, batch=10))
    assert await scene.count(JOBS) == 20


async def test_results_that_wait_to_be_taken_in_are_no_room(scene: Scene) -> None:
    """Else every batch of old results would let another batch go beyond the window."""
    await scene.sagas(await scene.subscription(), 200)
    limits = fixed(50, active_jobs_max=1000)
    one = await scene.another(limits=limits, batch=10)
    await scene.until_idle(one)
    await scene.finish()
    fresh = await scene.another(limits=limits, batch=10)
    for _ in range(5):
        await fresh.step()
        assert await scene.count(JOBS, ACTIVE) <= 50
    await scene.until_idle(fresh)
    assert await scene.count(JOBS, ACTIVE) == 50


@pytest.mark.slow
async def test_a_backlog_of_one_does_not_hold_up_the_others(scene: Scene) -> None:
    """Neither that of a busy subscription nor that of a paused one, though both stand first in time."""
    busy, paused, other = await scene.subscriptions(3)
    await scene.sagas(busy, 1_500)
    await scene.sagas(paused, 1_500)
    await scene.sql(f"UPDATE subscriptions SET paused = true WHERE id = {paused}")
    await scene.sagas(other, 5)
    one = await scene.another(limits=fixed(100))
    await one.step()
    assert await scene.count(JOBS, f"subscription_id = {other}") == 5
    assert await scene.count(JOBS, f"subscription_id = {paused}") == 0


@pytest.mark.slow
async def test_first_attempts_and_retries_share_the_room(scene: Scene) -> None:
    """The longest due goes first."""
    subscription = await scene.subscription()
    await scene.sagas(subscription, 20)
    first = await scene.database.value(f"SELECT MIN(id) FROM {SAGAS}")
    await scene.sql(f"UPDATE {SAGAS} SET next_attempt_at = '2020-01-03'")
    await scene.sql(f"UPDATE {SAGAS} SET next_attempt_at = '2020-01-01' WHERE id < {first + 4}")
    await scene.sql(
        f"UPDATE {SAGAS} SET status = 'PendingRetry', attempt_count = 1, next_attempt_at = '2020-01-02'"
        f" WHERE id >= {first + 12}"
    )
    await scene.until_idle(await scene.another(limits=fixed(10, active_jobs_max=100)))
    assert sorted(row["attempt_no"] for row in await scene.all(JOBS)) == [1] * 4 + [2] * 6


@pytest.mark.slow
async def test_every_one_of_many_lanes_is_served(scene: Scene) -> None:
    """More than have their turn at once, behind a backlog that fills what the news tell."""
    lanes = await scene.subscriptions(3 * LANES_AT_ONCE)
    await scene.sagas(lanes[0], 1_200)
    values = ", ".join(f"({number}, {lane}, 'c')" for number, lane in enumerate(lanes[1:], start=10**6))
    await scene.sql(f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id) VALUES {values}")
    one = await scene.another(limits=fixed(1))

    async def are_all_served() -> bool:
        await one.step()
        return await scene.count(JOBS) == len(lanes)

    await eventually(are_all_served, what="each lane to have a job")


@pytest.mark.slow
async def test_news_of_a_lane_are_seen_behind_whatever_others_hold(scene: Scene) -> None:
    """More lanes than have their turn at once; a paused one owns the oldest sagas, a busy one those after them."""
    lanes = await scene.subscriptions(3 * LANES_AT_ONCE)
    await scene.sagas(lanes[0], 700)
    await scene.sagas(lanes[1], 700)
    await scene.sql(f"UPDATE subscriptions SET paused = true WHERE id = {lanes[0]}")
    one = await scene.another(limits=fixed(1))
    await one.step()
    await scene.saga(lanes[-1])
    await one.step()
    assert await scene.count(JOBS, f"subscription_id = {lanes[-1]}") == 1
    assert await scene.count(JOBS, f"subscription_id = {lanes[0]}") == 0
