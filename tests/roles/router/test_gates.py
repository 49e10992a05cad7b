"""A router works only when both of its gates exist and are open. Otherwise it writes nothing at all."""

import pytest

from tests.roles.router.scene import Scene
from tidings.roles.router.passes import Outcome
from tidings.telemetry.notices import Notice, RouterStopped, RouterWorking


async def assert_closed(scene: Scene, *names: str) -> None:
    before = await scene.everything()
    done = await scene.router.step()
    assert done.outcome is Outcome.CLOSED
    assert all(name in done.reason for name in names), done.reason
    assert await scene.everything() == before


@pytest.fixture
async def waiting(bare: Scene) -> Scene:
    """Events and somebody who wants them; no gate."""
    await bare.route()
    await bare.subscription()
    await bare.events(3)
    return bare


async def test_missing_gates_are_closed_and_not_even_a_cursor_is_written(waiting: Scene) -> None:
    await assert_closed(waiting, "routing", "router:default")
    assert await waiting.count("route_worker_cursors") == 0


@pytest.mark.parametrize("closed", ["routing", "router:default"])
@pytest.mark.parametrize("how", ["closed", "missing"])
async def test_one_gate_of_two_is_enough_to_stop_everything(waiting: Scene, closed: str, how: str) -> None:
    """Seed 004: "Either closed → clean no-op."."""
    await waiting.open_gates()
    await waiting.router.step()
    await waiting.events(2)
    if how == "closed":
        await waiting.set_gate(closed, False)
    else:
        await waiting.sql(f"DELETE FROM gates WHERE name = '{closed}'")
    await assert_closed(waiting, closed)


async def test_an_open_gate_of_another_router_helps_nobody(waiting: Scene) -> None:
    await waiting.open_gates("other")
    await assert_closed(waiting, "router:default")


async def test_a_gate_that_opens_again_loses_nothing(waiting: Scene, told: list[Notice]) -> None:
    await waiting.open_gates()
    await waiting.set_gate("routing", False)
    await waiting.router.step()
    await waiting.router.step()
    await waiting.set_gate("routing", True)
    await waiting.drain()
    assert len(await waiting.sagas()) == 3
    changes = [type(notice) for notice in told if isinstance(notice, RouterStopped | RouterWorking)]
    assert changes == [RouterStopped, RouterWorking]


@pytest.mark.slow
async def test_gates_that_cannot_be_read_are_closed(breakable: Scene) -> None:
    """As those that are missing are."""
    await breakable.subscription()
    await breakable.events(3)
    async with breakable.without_right("SELECT", "gates"):
        breakable.router = await breakable.new_router()
        await assert_closed(breakable, "can't be read")
    breakable.router = await breakable.new_router()
    await breakable.drain()
    assert len(await breakable.sagas()) == 3
