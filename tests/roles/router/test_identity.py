"""A router that finds another log than it knew, or can't prove that it misses nothing, holds and says why."""

import pytest

from tests.roles.router.scene import Scene
from tidings.errors import TransientFailure
from tidings.roles.router.passes import Outcome
from tidings.roles.routes import routers as admin
from tidings.telemetry.notices import Notice, RouterStopped, RouterWorking

pytestmark = pytest.mark.slow


async def damage(scene: Scene, text: str) -> None:
    """As a restore does: past the guards of the log."""
    if scene.database.family == "postgresql":
        await scene.sql("ALTER TABLE events DISABLE TRIGGER USER")
    else:
        for trigger in ("event_changed", "event_removed"):
            await scene.sql(f"DROP TRIGGER {scene.database.names.schema}.{trigger}", role="admin")
    await scene.sql(text)


async def assert_held(scene: Scene, *words: str) -> None:
    before = await scene.everything()
    done = await scene.router.step()
    assert done.outcome is Outcome.HELD
    assert all(word in done.reason for word in words), done.reason
    assert await scene.everything() == before


async def routed_three(scene: Scene) -> None:
    await scene.subscription()
    await scene.events(3)
    await scene.drain()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM events WHERE id = 3",
        "UPDATE events SET correlation_id = 'another' WHERE id = 3",
        "UPDATE events SET created_at = '2020-01-01 00:00:00' WHERE id = 3",
    ],
)
async def test_a_router_whose_last_event_is_gone_or_another_one_holds_until_it_is_confirmed(
    breakable: Scene, told: list[Notice], change: str
) -> None:
    """It may have been given another log, by a restore."""
    await routed_three(breakable)
    await damage(breakable, change)
    await breakable.events(2)
    await assert_held(breakable, "Event 3", "gone or is another one")
    assert (await breakable.router.step()).outcome is Outcome.HELD
    await admin.confirm(await breakable.database.open("route_admin"), "default", "restored", "test")
    assert (await breakable.router.step()).read == 2
    changes = [type(notice) for notice in told if isinstance(notice, RouterStopped | RouterWorking)]
    assert changes == [RouterStopped, RouterWorking]


LAST_IS_THIRD = (
    "UPDATE route_worker_cursors SET position = 3, runs = 1, last_event_id = 3,"
    " last_event_correlation_id = (SELECT correlation_id FROM events WHERE id = 3),"
    " last_event_created_at = (SELECT created_at FROM events WHERE id = 3)"
)


async def go_back(scene: Scene, *losses: str) -> None:
    """As a server that took over and had not got everything: the log and the cursor are as they were, both of them."""
    await damage(scene, LAST_IS_THIRD)
    for text in losses:
        await scene.sql(text)
    engine = scene.router._engine
    while engine._idle:
        engine._idle.pop().abandon()


LOSSES = {
    "nothing came since": ("DELETE FROM events WHERE id > 3",),
    "another event has its id": ("UPDATE events SET correlation_id = 'of-the-new-primary' WHERE id = 5",),
}


@pytest.mark.parametrize("since", LOSSES)
async def test_a_router_that_knows_of_an_event_that_the_log_has_lost_stops_all_of_its_kind(
    breakable: Scene, since: str
) -> None:
    """After a failover with loss the cursor by itself shows nothing of it, as it has gone back with the log."""
    await routed_three(breakable)
    await breakable.events(2)
    await breakable.drain()
    other = await breakable.new_router()
    await go_back(breakable, *LOSSES[since])
    held = await breakable.router.step()
    assert held.outcome is Outcome.HELD
    assert "Event 5" in held.reason
    assert "routers confirm default" in held.remedy
    assert (await other.step()).outcome is Outcome.HELD
    await breakable.events(2)
    assert (await breakable.router.step()).outcome is Outcome.HELD
    await admin.confirm(await breakable.database.open("route_admin"), "default", "failed over", "test")
    await breakable.drain()
    assert {event for event, _ in await breakable.sagas()} >= {
        row["id"] for row in await breakable.sql("SELECT id FROM events")
    }


async def test_a_router_that_others_have_overtaken_does_not_stop_for_what_retention_took(breakable: Scene) -> None:
    await routed_three(breakable)
    other = await breakable.new_router()
    await breakable.events(2)
    await breakable.drain(other)
    overtaken = "UPDATE route_worker_cursors SET position = 5, runs = 2, last_event_id = NULL"
    await go_back(breakable, overtaken, "DELETE FROM events WHERE id <= 3")
    await breakable.events(1)
    assert (await breakable.router.step()).read == 1


async def test_an_earlier_event_that_is_gone_is_none_of_the_cursor_s_business(scene: Scene) -> None:
    """Retention removes old stories."""
    await routed_three(scene)
    await scene.sql("UPDATE route_worker_cursors SET last_event_id = NULL")
    await scene.events(1)
    assert (await scene.router.step()).read == 1


async def test_a_router_that_is_ahead_of_the_counter_of_events_holds(scene: Scene) -> None:
    await routed_three(scene)
    await scene.sql("UPDATE route_worker_cursors SET position = 50")
    await assert_held(scene, "at 3", "behind 50")


@pytest.mark.one_engine("postgresql", reason="MariaDB never sets AUTO_INCREMENT below the highest id that is there")
async def test_a_counter_that_was_set_back_holds_the_router(scene: Scene) -> None:
    await routed_three(scene)
    await scene.sql("SELECT setval(pg_get_serial_sequence('events', 'id'), 1)")
    await assert_held(scene, "at 1", "behind 3")


async def test_a_router_that_holds_does_not_hold_the_others(scene: Scene) -> None:
    await routed_three(scene)
    await admin.add(await scene.database.open("route_admin"), "billing", "billing", "test")
    await scene.open_gates("billing")
    await scene.sql("UPDATE route_worker_cursors SET last_event_correlation_id = 'x' WHERE worker_name = 'default'")
    await scene.events(2, domain="billing")
    await assert_held(scene, "Event 3")
    billing = await scene.new_router("billing")
    await scene.drain(billing)
    assert (await scene.cursor("billing"))["position"] == 5


@pytest.mark.one_engine("postgresql", reason="only PostgreSQL hands out ids in blocks")
async def test_ids_that_are_handed_out_in_blocks_prove_nothing(breakable: Scene) -> None:
    """With a cache of 10 events were skipped in every second history that was tried."""
    await routed_three(breakable)
    await breakable.sql("ALTER TABLE events ALTER COLUMN id SET CACHE 10")
    breakable.router = await breakable.new_router()
    await breakable.events(2)
    await assert_held(breakable, "cache of the sequence is 10, not 1")
    await breakable.sql("ALTER TABLE events ALTER COLUMN id SET CACHE 1")
    await breakable.drain(await breakable.new_router())
    assert len(await breakable.sagas()) == 5


@pytest.mark.one_engine("mariadb", reason="a PostgreSQL replica can't be made of a single server")
async def test_a_server_that_only_follows_is_not_written_to(breakable: Scene) -> None:
    """It refuses even the lock of the cursor; to the router that is a server which may become the primary again."""
    await routed_three(breakable)
    before = await breakable.everything()
    admin_session = await breakable.session("admin")
    await admin_session.run("SET GLOBAL read_only = 1")
    try:
        with pytest.raises(TransientFailure, match="read-only"):
            await breakable.router.step()
    finally:
        await admin_session.run("SET GLOBAL read_only = 0")
    assert await breakable.everything() == before
