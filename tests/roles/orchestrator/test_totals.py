"""The totals that charts and health are made of are exactly what was committed, whoever wrote it."""

import asyncio
from typing import Any

import pytest

from tests.roles.orchestrator.scene import JOBS, SAGAS, Scene
from tests.support.poison import plant
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.retrying import Backoff

ONCE = RetryPolicy(1, Backoff(3600, 3600, 0))


async def totals(scene: Scene, of: str = "subscription_id = 0") -> dict[str, int]:
    text = "SELECT SUM(delivered) AS delivered, SUM(failed) AS failed, SUM(dead) AS dead FROM delivery_totals"
    (row,) = await scene.sql(f"{text} WHERE {of}")
    return {name: int(value or 0) for name, value in row.items()}


async def counted(scene: Scene) -> dict[str, int]:
    """The same, from jobs and dead letters."""
    done = f"{JOBS} WHERE applied_at IS NOT NULL AND status"
    return {
        "delivered": int(await scene.database.value(f"SELECT COUNT(*) FROM {done} = 'Completed'")),
        "failed": int(await scene.database.value(f"SELECT COUNT(*) FROM {done} = 'Failed'")),
        "dead": int(await scene.database.value("SELECT COUNT(*) FROM dead_letters")),
    }


async def test_each_result_is_in_the_minute_of_all_and_in_the_hour_of_its_subscription(scene: Scene) -> None:
    one, other = await scene.subscriptions(2)
    await scene.sagas(one, 3)
    await scene.sagas(other, 2)
    await scene.step()
    await scene.sql(f"UPDATE {JOBS} SET duration_ms = 250")
    await scene.finish("http_500", where=f"subscription_id = {other}")
    await scene.finish()
    await scene.step()
    assert await totals(scene) == {"delivered": 3, "failed": 2, "dead": 0}
    assert await totals(scene, f"subscription_id = {one}") == {"delivered": 3, "failed": 0, "dead": 0}
    assert await totals(scene, f"subscription_id = {other}") == {"delivered": 0, "failed": 2, "dead": 0}
    assert await scene.count("delivery_totals", "within_300ms = delivered + failed") == 3
    (row,) = await scene.sql("SELECT began_at FROM delivery_totals WHERE subscription_id = 0")
    (hour,) = {
        found["began_at"] for found in await scene.sql("SELECT began_at FROM delivery_totals WHERE subscription_id > 0")
    }
    assert (row["began_at"].second, hour.minute, hour.second) == (0, 0, 0)


async def test_results_of_later_steps_are_added(scene: Scene) -> None:
    subscription = await scene.subscription()
    await scene.sagas(subscription, 2)
    for _ in range(3):
        await scene.fail()
    assert await totals(scene, f"subscription_id = {subscription}") == {"delivered": 0, "failed": 6, "dead": 2}
    assert await totals(scene) == await counted(scene)


async def test_who_is_buried_since_the_limit_was_lowered_is_dead_without_an_attempt(scene: Scene) -> None:
    subscription = await scene.subscription()
    await scene.sagas(subscription, 1)
    await scene.fail()
    await scene.sql("UPDATE subscriptions SET max_retry_limit = 1")
    await scene.make_due()
    await (await scene.another()).step()
    assert await totals(scene) == {"delivered": 0, "failed": 1, "dead": 1} == await counted(scene)


@pytest.mark.slow
async def test_several_at_once_lose_and_double_nothing_and_do_not_trip_over_each_other(scene: Scene) -> None:
    for subscription in await scene.subscriptions(5):
        await scene.sagas(subscription, 300)
    await scene.until_idle()
    await scene.finish("http_500", where="MOD(saga_id, 3) = 0")
    await scene.finish()
    orchestrators: list[Any] = [await scene.another(ONCE, batch=50) for _ in range(4)]
    for one in orchestrators:
        # The worst case: all of them on the same rows.
        one._totals._slot = 3

    async def work(one: Any) -> None:
        while (await one.step()).did_work or await scene.count(SAGAS, "status = 'InProgress'"):
            pass

    await asyncio.gather(*map(work, orchestrators))
    assert await totals(scene) == {"delivered": 1000, "failed": 500, "dead": 500} == await counted(scene)
    assert await totals(scene, "subscription_id > 0") == await totals(scene)


async def test_a_place_is_used_again_after_three_days_and_nothing_of_the_past_is_added(scene: Scene) -> None:
    subscription = await scene.subscription()
    await scene.sagas(subscription, 1)
    await scene.step()
    await scene.finish()
    await scene.step()
    before = {row["subscription_id"]: row["began_at"] for row in await scene.sql("SELECT * FROM delivery_totals")}
    assert before.keys() == {0, subscription}
    await scene.sql("UPDATE delivery_totals SET began_at = began_at - INTERVAL '3' DAY, delivered = 700, failed = 70")
    await scene.sagas(subscription, 2)
    await scene.step()
    await scene.finish()
    await scene.step()
    new = await scene.sql("SELECT * FROM delivery_totals WHERE delivered < 700")
    assert {row["subscription_id"]: (row["delivered"], row["failed"]) for row in new} == dict.fromkeys(before, (2, 0))
    # A minute may have passed in between, and seldom an hour: then it is another place.
    elsewhere = [row for row in new if row["began_at"] != before[row["subscription_id"]]]
    assert await scene.count("delivery_totals", "delivered = 700") == len(elsewhere)


@pytest.mark.slow
async def test_what_was_rolled_back_is_in_no_total(damaged: Scene) -> None:
    """A row that the database refuses is set aside: the others are counted, it is not."""
    subscription = await damaged.subscription()
    await damaged.sagas(subscription, 4)
    await damaged.step()
    await damaged.finish()
    first = await damaged.database.value(f"SELECT MIN(id) FROM {SAGAS}")
    await plant(damaged.database, "UPDATE", SAGAS, f"NEW.id = {first}")
    await damaged.step()
    assert await totals(damaged) == {"delivered": 3, "failed": 0, "dead": 0} == await counted(damaged)
