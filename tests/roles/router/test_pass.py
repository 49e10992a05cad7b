"""One pass of the router: what it decides, what it writes, and that it does so once."""

from tests.roles.router.scene import Scene
from tidings.roles.router.router import Outcome


async def test_an_event_becomes_one_saga_for_each_subscription_that_wants_it(scene: Scene) -> None:
    """Seed 002, phase 4: "For each (event, subscription) pair, insert into webhook_delivery_sagas"."""
    first, second = await scene.subscription("order.paid"), await scene.subscription("order.*")
    await scene.subscription("invoice.sent")
    (event,) = await scene.events(1)
    await scene.drain()
    assert await scene.sagas() == [(event, first), (event, second)]
    (attempt,) = await scene.attempts()
    assert (attempt["status"], attempt["matched"], attempt["attempt_no"]) == ("sent", 2, 1)


async def test_closed(bare: Scene) -> None:
    await bare.route()
    await bare.events(3)
    assert (await bare.router.step()).outcome is Outcome.CLOSED
