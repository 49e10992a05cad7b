"""Seed 002, phase 4: from new events to sagas, by a worker in the background that does nothing else."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.roles.router.scene import Scene
from tests.support.commands import run
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.roles.routes import routers as admin

STANDINGS = [(active, verified) for active in (True, False) for verified in (True, False)]


@pytest.mark.slow
async def test_a_router_in_the_background_routes_events_as_they_come(
    scene: Scene, start: Callable[[Process], Process]
) -> None:
    """Phase 4: "a background worker that reacts when new events are inserted into events"."""
    subscription = await scene.subscription()
    start(tidings("run", "router", **scene.database.environment()))
    for _ in range(3):
        (event,) = await scene.events(1)

        async def is_routed(pair: tuple[int, int] = (event, subscription)) -> bool:
            return pair in await scene.sagas()

        await eventually(is_routed, timeout=30, what="the event to be routed")


@pytest.mark.slow
async def test_a_pass_can_be_called_by_those_who_schedule_it(scene: Scene, tmp_path: Path) -> None:
    """Seed 004: "not a daemon — invoked": `tidings run router --once`."""
    await scene.subscription()
    await scene.drain()
    await scene.events(2)
    said = run("run", "router", "--once", "--json", cwd=tmp_path, env=scene.database.environment())
    done = orjson.loads(said.stdout)
    assert (done["outcome"], done["read"], done["sagas"]) == ("routed", 2, 2)
    assert await scene.count("webhook_delivery_sagas") == 2


async def test_only_active_and_verified_subscriptions_get_a_saga(scene: Scene) -> None:
    """Phase 4: "where event_type matches and active = 1 and verified = 1"."""
    made = {standing: await scene.subscription(active=standing[0], verified=standing[1]) for standing in STANDINGS}
    (event,) = await scene.events(1)
    await scene.drain()
    assert await scene.sagas() == [(event, made[True, True])]


async def test_a_subscription_without_a_star_gets_its_own_type_alone(scene: Scene) -> None:
    """Phase 4: event_type 相同."""
    subscription = await scene.subscription("order.paid")
    for event_type in ("order", "order.paid.eu", "Order.paid", "order.pai", "order.paid"):
        await scene.events(1, event_type)
    await scene.drain()
    assert await scene.sagas() == [(await scene.last_id(), subscription)]


async def test_a_saga_that_is_there_is_neither_doubled_nor_changed(scene: Scene) -> None:
    """Phase 4: 依 (event_id, subscription_id) 唯一鍵實現冪等 (idempotent by the unique key)."""
    subscription = await scene.subscription()
    open_one, ended, new = await scene.events(3)
    await scene.sql(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status, attempt_count)"
        f" VALUES ({open_one}, {subscription}, 'c', 'InProgress', 3), ({ended}, {subscription}, 'c', 'Completed', 1)"
    )
    text = "SELECT * FROM webhook_delivery_sagas WHERE correlation_id = 'c' ORDER BY id"
    before = [dict(row) for row in await scene.sql(text)]
    await scene.drain()
    await admin.rewind(await scene.database.open("route_admin"), "default", 0, "again", "test")
    await scene.drain()
    assert [dict(row) for row in await scene.sql(text)] == before
    assert await scene.sagas() == [(event, subscription) for event in (open_one, ended, new)]
