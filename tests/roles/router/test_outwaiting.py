"""A router that runs for a single pass closes holes too, although somebody is writing all the time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.roles.router.scene import Scene
from tests.support.waiting import pause

pytestmark = pytest.mark.slow


@asynccontextmanager
async def writers_taking_turns(scene: Scene) -> AsyncIterator[None]:
    """One of two transactions is always open."""
    sessions = [await scene.session(), await scene.session()]
    insert = "INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}')"
    await sessions[0].run("BEGIN")
    await sessions[0].run(insert)

    async def write() -> None:
        while True:
            for ending, beginning in ((0, 1), (1, 0)):
                await sessions[beginning].run("BEGIN")
                await sessions[beginning].run(insert)
                await sessions[ending].run("COMMIT")
                await pause(0.01)

    writing = asyncio.ensure_future(write())
    yield
    writing.cancel()
    await asyncio.wait({writing})


async def one_hole(scene: Scene) -> tuple[int, int]:
    rolled_back = await scene.late_writer()
    await scene.event()
    await scene.drain()
    await rolled_back.run("ROLLBACK")
    (hole,) = await scene.holes()
    return hole


async def test_a_single_pass_after_a_little_patience_closes_what_nobody_can_fill(scene: Scene) -> None:
    hole = await one_hole(scene)
    async with writers_taking_turns(scene):
        hasty = await scene.new_router()
        await hasty.step()
        assert hole in await scene.holes()
        patient = await scene.new_router()
        await patient.outwait_writers(10)
        await patient.step()
        assert hole not in await scene.holes()


async def test_patience_ends_when_somebody_stays(scene: Scene) -> None:
    hole = await one_hole(scene)
    await scene.late_writer()
    router = await scene.new_router()
    await router.outwait_writers(0.1)
    assert (await router.step()).holes == 1
    assert await scene.holes() == [hole]


async def test_without_holes_there_is_nothing_to_wait_for(scene: Scene) -> None:
    await scene.late_writer()
    async with asyncio.timeout(5):
        await scene.router.outwait_writers(60)
