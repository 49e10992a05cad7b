"""Who may still write is known by lists, and lists are worth as much as the connection that made them."""

import pytest

from tests.roles.router.scene import Scene
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tests.support.pgbouncer import PooledPostgresServer
from tests.support.waiting import eventually
from tidings.telemetry.notices import Notice, WritersUnknown

pytestmark = pytest.mark.slow


async def kill_routers(scene: Scene) -> None:
    """Ends the connections of all routers, as a restart of the server does, and lets those learn of it who listen."""
    login = scene.database.names.login("event_router")
    if scene.database.family == "postgresql":
        found = f"SELECT pid AS id FROM pg_stat_activity WHERE usename = '{login}'"
        kill = "SELECT pg_terminate_backend({})"
    else:
        found, kill = f"SELECT id FROM information_schema.processlist WHERE user = '{login}'", "KILL {}"
    for row in await scene.sql(found, "admin"):
        await scene.sql(kill.format(row["id"]), "admin")

    async def are_gone() -> bool:
        return not await scene.sql(found, "admin")

    await eventually(are_gone, what="the connections to end")


async def test_lists_of_writers_are_void_when_their_connection_is_lost(scene: Scene) -> None:
    """Names mean nothing across a restart of the server."""
    if isinstance(scene.database.server, PooledPostgresServer):
        pytest.skip("a pooler keeps its clients; only prepared transactions outlive the server: they are in all lists")
    listed = await scene.late_writer()
    await scene.event()
    await scene.drain()
    (hole,) = await scene.holes()
    await listed.run("ROLLBACK")
    # Nobody of the list is left, but that list is gone too; this one may have another name in it.
    unlisted = await scene.late_writer()
    await kill_routers(scene)
    await scene.router.step()
    await scene.event()
    await scene.router.step()
    assert hole in await scene.holes()
    await unlisted.run("ROLLBACK")

    async def is_closed() -> bool:
        await scene.router.step()
        return await scene.holes() == []

    await eventually(is_closed, what="the holes to close")


async def test_an_error_in_the_look_drops_no_hole_and_stops_no_event(
    proxy: FaultProxy, scene: Scene, told: list[Notice]
) -> None:
    router = await scene.new_router(engine=await scene.engine(proxy))
    rolled_back = await scene.late_writer()
    late = await scene.late_writer()
    await scene.event()
    await scene.drain(router)
    await rolled_back.run("ROLLBACK")
    await late.run("COMMIT")
    new = await scene.event()
    proxy.arm(Fault("router.present_writers", CUT))
    await router.step()
    assert [type(notice) for notice in told if isinstance(notice, WritersUnknown)] == [WritersUnknown]
    # What arrived late is seen, who wrote it or not.
    assert {2, new} <= {one["event_id"] for one in await scene.attempts()}
    assert await scene.holes() == [(1, 1)]
    await scene.drain(router)
    assert await scene.holes() == []


async def test_what_arrives_late_is_routed_by_the_next_pass_though_its_neighbour_stays_open(scene: Scene) -> None:
    late, staying = await scene.late_writer(), await scene.late_writer()
    await scene.event()
    await scene.drain()
    assert await scene.holes() == [(1, 2)]
    await late.run("COMMIT")
    assert (await scene.router.step()).late == 1
    assert await scene.holes() == [(2, 2)]
    await staying.run("COMMIT")
    await scene.drain()
    assert {one["event_id"] for one in await scene.attempts()} == {1, 2, 3}


async def test_a_hole_of_a_billion_ids_is_one_range_and_closes_as_one(breakable: Scene) -> None:
    await breakable.event()
    if breakable.database.family == "postgresql":
        await breakable.sql("SELECT setval(pg_get_serial_sequence('events', 'id'), 1000000000)")
    else:
        await breakable.sql("ALTER TABLE events AUTO_INCREMENT = 1000000001")
    await breakable.event()
    assert (await breakable.router.step()).holes == 1
    assert await breakable.holes() == [(2, 1_000_000_000)]
    await breakable.drain(steps=5)
    assert await breakable.holes() == []


@pytest.mark.one_engine("mariadb", reason="only there writers leave markers")
async def test_a_backlog_of_markers_does_not_keep_a_router_from_its_work(scene: Scene) -> None:
    await scene.events(9_000)
    done = await scene.router.step()
    assert (done.read, await scene.count("event_writers")) == (1_000, 7_000)
    await scene.drain()
    assert await scene.count("event_writers") == 0
