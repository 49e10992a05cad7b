"""Histories that chance meets too rarely, written down: each is a way in which a reader could lose or repeat events."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

import pytest

from tests.scenarios.routing.scene import BATCH, Scene
from tests.scenarios.routing.stage import ROUTER, Verdict
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy, When
from tests.support.processes import Start, tidings

NOTHING_WRONG = Verdict()
WITNESS = "router.present_writers"


@pytest.mark.slow
@pytest.mark.parametrize("end", [Scene.crash, Scene.restart], ids=["kill -9", "restart"])
async def test_a_prepared_transaction_is_waited_for_across_the_end_of_the_server(
    private_scene: Scene, end: Callable[[Scene], Awaitable[None]]
) -> None:
    """PostgreSQL gives it another name then: whoever looks for the old one thinks that it has ended."""
    scene = private_scene
    ids = await scene.prepare("over-the-end")
    await scene.publish()
    await scene.step(2)
    await end(scene)
    await scene.publish()
    await scene.step(5)
    assert not await scene.routed() & {*ids}
    assert any(lo <= ids[0] <= hi for lo, hi in (await scene.cursor()).holes)
    await scene.finish("over-the-end")
    assert await scene.drain() == NOTHING_WRONG
    assert await scene.routed() >= {*ids}


@pytest.mark.slow
async def test_a_prepared_transaction_that_a_new_router_meets_after_a_crash_is_waited_for(private_scene: Scene) -> None:
    scene = private_scene
    ids = await scene.prepare("met-anew")
    await scene.publish()
    await scene.step(2)
    await scene.crash()
    router = await scene.new_router()
    await scene.publish()
    await scene.step(5, router)
    assert not await scene.routed() & {*ids}
    await scene.finish("met-anew")
    assert await scene.drain(router) == NOTHING_WRONG
    assert await scene.routed() >= {*ids}


@pytest.mark.slow
async def test_ids_that_a_crash_burns_are_one_hole_that_closes(private_scene: Scene) -> None:
    """PostgreSQL draws 32 numbers ahead in its log, and a crash forgets which of them were used."""
    scene = private_scene
    unborn = await scene.producer()
    await unborn.run("BEGIN")
    await scene.publish(3, by=unborn)
    await scene.publish()
    await scene.step()
    await scene.crash()
    await scene.publish(2)
    await scene.step(2)
    assert len((await scene.cursor()).holes) <= 1
    assert await scene.drain() == NOTHING_WRONG


async def test_what_a_savepoint_undoes_is_dropped_and_the_rest_of_its_transaction_is_routed(scene: Scene) -> None:
    late = await scene.producer()
    await late.run("BEGIN")
    kept = await scene.publish(3, by=late)
    await late.run("SAVEPOINT part")
    undone = await scene.publish(3, by=late)
    await scene.publish()
    await scene.step(2)
    await late.run("ROLLBACK TO SAVEPOINT part")
    kept += await scene.publish(2, by=late)
    await scene.publish()
    await scene.step(2)
    await late.run("COMMIT")
    assert await scene.drain() == NOTHING_WRONG
    assert await scene.routed() >= {*kept}
    assert not await scene.routed() & {*undone}


async def test_a_transaction_of_three_batches_that_commits_late_is_routed_batch_by_batch(scene: Scene) -> None:
    late = await scene.producer()
    await late.run("BEGIN")
    ids = await scene.publish(3 * BATCH, by=late)
    await scene.publish()
    await scene.step(2)
    await late.run("COMMIT")
    done = await scene.step(1)
    new = await scene.publish()
    done = [*done, *await scene.step(1)]
    assert await scene.routed() >= {*new}, "late events must not hold up new ones"
    while not await scene.routed() >= {*ids}:
        done = [*done, *await scene.step(1)]
        assert len(done) < 12, "it never comes to an end"
    assert all(one.read <= BATCH for one in done)
    assert await scene.drain() == NOTHING_WRONG


async def test_two_instances_that_take_turns_route_late_events_all_the_same(scene: Scene) -> None:
    """Each of them finds the holes changed by the other every time it looks."""
    instances = [scene.router, await scene.new_router()]
    for instance in instances:
        await scene.publish()
        await scene.step(1, instance)
    late = await scene.producer()
    await late.run("BEGIN")
    ids = await scene.publish(2, by=late)
    await scene.publish()
    await scene.step(1, instances[0])
    await late.run("COMMIT")
    for turn in range(1, 5):
        await scene.publish()
        await scene.step(1, instances[turn % 2])
    assert await scene.routed() >= {*ids}
    assert await scene.drain(*instances) == NOTHING_WRONG


async def test_without_knowing_who_writes_no_hole_is_dropped_and_the_rest_is_routed(scene: Scene) -> None:
    with FaultProxy(scene.database.server.port, scene.database.kind) as proxy:
        router = await scene.new_router(through=proxy)
        late = await scene.producer()
        await late.run("BEGIN")
        ids = await scene.publish(2, by=late)
        proxy.arm(*(Fault(WITNESS, CUT, nth=nth) for nth in range(1, 6)))
        for _ in range(5):
            seen = await scene.publish()
            await scene.step(1, router)
            assert await scene.routed() >= {*seen}
        assert len(proxy.fired) >= 4
        assert [(ids[0], ids[-1])] == [*(await scene.cursor()).holes]
        proxy.clear()
        await late.run("COMMIT")
        assert await scene.drain(router) == NOTHING_WRONG
        assert await scene.routed() >= {*ids}
        await router.close()
        await scene.database.close()


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_router_killed_between_its_pass_and_its_look_at_writers_loses_nothing(
    scene: Scene, start: Start, when: When
) -> None:
    late = await scene.producer()
    await late.run("BEGIN")
    ids = await scene.publish(2, by=late)
    await scene.publish()
    with FaultProxy(scene.database.server.port, scene.database.kind, Fault(WITNESS, KILL(), when)) as proxy:
        proxied = {"TIDINGS_DATABASE_URL_EVENT_ROUTER": proxy.url(scene.database.url(ROUTER))}
        router = start(tidings("run", "router", **scene.database.environment() | proxied))
        await proxy.until_fired(30)
        assert await asyncio.to_thread(router.wait) == -signal.SIGKILL, router.output
    assert not await scene.routed() & {*ids}
    await late.run("COMMIT")
    assert await scene.drain() == NOTHING_WRONG
    assert await scene.routed() >= {*ids}
