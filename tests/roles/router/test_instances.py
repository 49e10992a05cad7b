"""Any number of processes may run the same router, and each domain has one router: nothing is done twice."""

import asyncio
from collections import Counter

import pytest

from tests.roles.router.scene import Scene
from tests.support.locks import somebody_waits
from tidings.errors import NotFound
from tidings.roles.router.passes import Outcome
from tidings.roles.router.router import Router
from tidings.roles.routes import routers as admin


async def test_while_one_instance_has_the_cursor_the_others_say_so_and_do_nothing(scene: Scene) -> None:
    await scene.drain()
    await scene.events(3)
    other = await scene.session()
    await other.run("BEGIN")
    await other.run("SELECT * FROM route_worker_cursors FOR UPDATE")
    assert (await scene.router.step()).outcome is Outcome.BUSY
    assert await scene.attempts() == []
    await other.run("COMMIT")
    assert (await scene.router.step()).read == 3


async def test_of_two_instances_that_make_the_first_cursor_at_once_one_waits(scene: Scene) -> None:
    other = await scene.session()
    await other.run("BEGIN")
    await other.run("INSERT INTO route_worker_cursors (worker_name, event_domain) VALUES ('default', '*')")
    step = asyncio.ensure_future(scene.router.step())
    await somebody_waits(scene.database)
    await other.run("COMMIT")
    assert (await step).outcome is Outcome.BUSY
    await scene.events(1)
    assert (await scene.router.step()).read == 1


async def test_a_router_that_nobody_added_is_an_error(scene: Scene) -> None:
    with pytest.raises(NotFound, match="routers add unknown"):
        await (await scene.new_router("unknown")).step()


@pytest.mark.slow
async def test_two_instances_at_once_double_nothing(scene: Scene) -> None:
    await scene.subscriptions(2)
    await scene.route("order.*", target="task", task_biz_type="MAIL")
    events = await scene.events(5_000)
    routers = [await scene.new_router(batch=200) for _ in range(2)]

    async def work(router: Router) -> int:
        read = 0
        while (done := await router.step()).outcome is not Outcome.IDLE:
            read += done.read
        return read

    read = await asyncio.gather(*map(work, routers))
    assert sum(read) == 5_000
    assert await scene.statuses() == {"sent": 10_000}
    assert Counter(event for event, _ in await scene.sagas()) == dict.fromkeys(events, 2)
    assert len(await scene.tasks()) == 5_000


async def test_instances_that_take_turns_still_route_what_comes_late(scene: Scene) -> None:
    """Each of them finds the cursor moved by the other one, every time."""
    routers = [await scene.new_router(), await scene.new_router()]
    late = await scene.late_writer()
    for router in routers * 2:
        await scene.event()
        await router.step()
    assert len(await scene.holes()) == 1
    await late.run("COMMIT")
    for router in routers:
        await scene.event()
        await router.step()
    assert {one["event_id"] for one in await scene.attempts()} == set(range(1, 8))


async def test_instances_that_take_turns_still_close_holes_while_others_write(scene: Scene) -> None:
    routers = [await scene.new_router(), await scene.new_router()]
    rolled_back = await scene.late_writer()
    busy = await scene.late_writer()
    for router in routers * 2:
        await scene.event()
        await router.step()
    await rolled_back.run("ROLLBACK")
    await busy.run("COMMIT")
    another = await scene.late_writer()
    for router in routers * 2:
        await scene.event()
        await router.step()
    first, *_ = await scene.holes()
    assert first[0] > 2, "the hole of the transaction that was rolled back is still there"
    await another.run("ROLLBACK")


async def test_a_router_takes_its_domain_over_where_the_other_one_stands_with_the_same_holes(scene: Scene) -> None:
    late = await scene.late_writer("'late', 'billing'", "'late', 'default'")
    await scene.events(2, domain="billing")
    await scene.events(2)
    await scene.drain()
    await admin.add(await scene.database.open("route_admin"), "billing", "billing", "test")
    await scene.open_gates("billing")
    assert (await scene.cursor("billing"))["position"] == (await scene.cursor())["position"] == 6
    assert await scene.holes("billing") == await scene.holes() == [(1, 2)]
    await late.run("COMMIT")
    await scene.events(2, domain="billing")
    await scene.events(2)
    billing = await scene.new_router("billing")
    for router in (scene.router, billing, scene.router):
        await scene.drain(router)
    by_router = {
        name: sorted(one["event_id"] for one in await scene.attempts() if one["worker_name"] == name)
        for name in ("default", "billing")
    }
    assert by_router == {"default": [2, 3, 4, 5, 6, 9, 10], "billing": [1, 7, 8]}
    assert await scene.holes() == await scene.holes("billing") == []


@pytest.mark.slow
async def test_every_domain_is_routed_exactly_once_while_routers_are_added(scene: Scene) -> None:
    """Each domain has one router; `*` means every domain that no other names."""
    route_admin = await scene.database.open("route_admin")
    routers = {"default": await scene.new_router(batch=7)}
    for name in ("billing", "shop"):
        for domain in ("billing", "shop", "default"):
            await scene.events(10, domain=domain)
        await asyncio.gather(*(router.step() for router in routers.values()))
        await admin.add(route_admin, name, name, "test")
        await scene.open_gates(name)
        routers[name] = await scene.new_router(name, batch=5)
        await asyncio.gather(*(router.step() for router in routers.values()))
    await asyncio.gather(*(scene.drain(router) for router in routers.values()))
    attempts = await scene.attempts()
    assert Counter(one["event_id"] for one in attempts) == dict.fromkeys(range(1, 61), 1)
    assert {one["worker_name"] for one in attempts} == set(routers)
