"""`subscriptions replay`: what a subscription missed is made up for, once, in batches, beside running routers."""

import asyncio
import datetime
from typing import Any

import pytest

from tests.roles.router.scene import Scene
from tidings.errors import GateClosed, NotFound, SubscriptionRefused
from tidings.roles.router.backfill import Backfilled, backfill
from tidings.roles.router.router import Router

pytestmark = pytest.mark.slow

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


async def replay(
    scene: Scene, subscription: int, since: datetime.datetime = LONG_AGO, batch: int = 1_000
) -> list[Backfilled]:
    return [done async for done in backfill(await scene.engine(), subscription, since, "test", batch)]


async def assert_adds_up(scene: Scene) -> None:
    """As `reconcile` counts: what was sent, each as often as it matched, makes so many sagas."""
    sent = "status = 'sent' AND route_kind = 'webhook'"
    matched = await scene.value(f"SELECT COALESCE(SUM(matched), 0) FROM route_attempts WHERE {sent}")
    assert int(matched) == await scene.count("webhook_delivery_sagas")


async def test_missing_sagas_are_made_once_with_an_attempt_for_each(scene: Scene) -> None:
    first = await scene.subscription()
    events = await scene.events(3)
    await scene.drain()
    late = await scene.subscription("order.*")
    assert (await replay(scene, late))[-1] == Backfilled(3, 3, 0, is_done=True)
    assert await scene.sagas() == sorted((event, one) for event in events for one in (first, late))
    made = [one for one in await scene.attempts() if one["worker_name"] == f"replay:{late}"]
    assert [(one["event_id"], one["status"], one["matched"], one["reason"]) for one in made] == [
        (event, "sent", 1, "replay") for event in events
    ]
    assert (await replay(scene, late))[-1].made == 0
    await assert_adds_up(scene)
    audited = [("subscription.replayed", f"subscription:{late}", {"since": LONG_AGO.isoformat()})]
    assert await scene.audited() == audited * 2


async def test_only_what_its_routes_would_send_to_it_is_made(scene: Scene) -> None:
    await scene.route("order.dry", dry_run=True)
    await scene.route("order.off", enabled=False)
    await scene.route("order.task", target="task", task_biz_type="MAIL")
    for event_type in ("order.paid", "order.dry", "order.off", "order.task", "invoice.sent"):
        await scene.events(1, event_type)
    await scene.drain()
    late = await scene.subscription("order.*")
    await replay(scene, late)
    assert await scene.sagas() == [(1, late), (4, late)]
    await assert_adds_up(scene)


async def test_what_is_older_than_asked_for_is_left_out(scene: Scene) -> None:
    for year in (2021, 2022, 2023):
        await scene.event(created_at=f"{year}-01-01 00:00:00")
    await scene.drain()
    late = await scene.subscription()
    await replay(scene, late, datetime.datetime(2022, 1, 1, tzinfo=datetime.UTC))
    assert await scene.sagas() == [(2, late), (3, late)]


async def test_what_no_router_has_decided_yet_is_left_to_the_router(scene: Scene) -> None:
    await scene.events(2)
    await scene.drain()
    late = await scene.subscription()
    await scene.events(2)
    await replay(scene, late)
    assert await scene.sagas() == [(1, late), (2, late)]
    await scene.drain()
    assert len(await scene.sagas()) == 4
    await assert_adds_up(scene)


async def test_many_events_of_one_moment_are_gone_through_in_batches(scene: Scene) -> None:
    await scene.events(7)
    await scene.events(4)
    await scene.drain()
    late = await scene.subscription()
    done = await replay(scene, late, batch=3)
    assert [(one.looked_at, one.is_done) for one in done] == [(3, False), (6, False), (9, False), (11, True)]
    assert len(await scene.sagas()) == 11


async def test_one_that_was_broken_off_goes_on_where_it_was(scene: Scene) -> None:
    await scene.events(9)
    await scene.drain()
    late = await scene.subscription()
    engine = await scene.engine()
    async for _ in backfill(engine, late, LONG_AGO, "test", 3):
        break
    assert len(await scene.sagas()) == 3
    assert (await replay(scene, late, batch=3))[-1].made == 6
    await assert_adds_up(scene)


@pytest.mark.parametrize("state", ["active", "verified"])
async def test_a_subscription_to_which_nothing_is_sent_is_refused(scene: Scene, state: str) -> None:
    await scene.events(2)
    await scene.drain()
    columns: dict[str, Any] = {state: False}
    late = await scene.subscription(**columns)
    before = await scene.everything()
    with pytest.raises(SubscriptionRefused, match=f"not {state}"):
        await replay(scene, late)
    assert await scene.everything() == before


async def test_a_subscription_that_does_not_exist_is_not_found(scene: Scene) -> None:
    with pytest.raises(NotFound):
        await replay(scene, 99)


async def test_a_subscription_that_is_deactivated_meanwhile_gets_no_more(scene: Scene) -> None:
    await scene.events(6)
    await scene.drain()
    late = await scene.subscription()
    filling = backfill(await scene.engine(), late, LONG_AGO, "test", 3)
    await anext(filling)
    await scene.sql("UPDATE subscriptions SET active = false")
    with pytest.raises(SubscriptionRefused):
        await anext(filling)
    assert len(await scene.sagas()) == 3


async def test_a_closed_master_gate_stops_it(scene: Scene) -> None:
    await scene.events(2)
    await scene.drain()
    late = await scene.subscription()
    await scene.set_gate("routing", False)
    before = await scene.everything()
    with pytest.raises(GateClosed):
        await replay(scene, late)
    assert await scene.everything() == before


async def test_what_waits_in_the_dead_letters_is_left_to_their_replay(scene: Scene) -> None:
    await scene.events(2)
    await scene.drain()
    late = await scene.subscription()
    await scene.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
        " VALUES (1, 'default', 'wrk:default:-:1', '{}', 'refused')"
    )
    await replay(scene, late)
    assert await scene.sagas() == [(2, late)]


async def test_an_event_that_the_database_refuses_stops_none_of_the_others(breakable: Scene) -> None:
    await breakable.events(20)
    await breakable.drain()
    late = await breakable.subscription()
    await breakable.sql("ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT poison CHECK (event_id <> 7)")
    assert (await replay(breakable, late))[-1] == Backfilled(20, 19, 1, is_done=True)
    await assert_adds_up(breakable)
    await breakable.sql("ALTER TABLE webhook_delivery_sagas DROP CONSTRAINT poison")
    assert (await replay(breakable, late))[-1].made == 1


async def test_beside_routers_that_run_and_rewind_nothing_is_doubled_and_nothing_stands_still(scene: Scene) -> None:
    await scene.subscription()
    await scene.events(2_000)
    await scene.drain()
    late = await scene.subscription()
    await scene.events(2_000)
    await scene.route("order.*")  # Another route, so that a rewind decides anew.
    await scene.rewind()
    router = await scene.new_router(batch=100)
    engines = [await scene.engine(), await scene.engine()]

    async def fill(number: int) -> None:
        async for _ in backfill(engines[number], late, LONG_AGO, "test", 400):
            pass

    filling = asyncio.gather(fill(0), fill(1))
    passes = await until_done(filling, router)
    assert passes > 5, "the router had no turn"
    await scene.drain(router, steps=100)
    assert await scene.count("webhook_delivery_sagas") == 8_000
    await assert_adds_up(scene)


async def until_done(filling: "asyncio.Future[tuple[None, None]]", router: Router) -> int:
    """How many passes of the router did something meanwhile."""
    passes = 0
    while not filling.done():
        passes += (await router.step()).did_work
    await filling
    return passes
