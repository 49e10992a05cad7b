"""A batch of a mass requeue reads as much at its end as at its beginning, however many went before. By the server."""

import pytest

from tests.plans.counters import Counters, Reads, reads_of
from tests.roles.dead_letters.scene import EVERYTHING, Scene
from tests.support.database import Database
from tests.support.engine_words import Words
from tidings.db.engine import Engine
from tidings.model.dead_letter import MassRequeueStatus
from tidings.roles.dead_letters.requeueing import MOST_AT_ONCE, begin, go_on, look

pytestmark = pytest.mark.slow

OPERATOR = "dead_letter_operator"
BATCH = 100
# Pages also of indexes that grow a level, and of rows that others have left behind.
SLACK, MORE_ROWS, MORE_PAGES = 1.3, 50, 400


@pytest.mark.parametrize("size", [3_000, pytest.param(100_000, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
async def test_a_batch_costs_the_same_wherever_it_is(throwaway: Database, counters: Counters, size: int) -> None:
    """However long the list: the cost of a batch is flat."""
    engine = throwaway
    # Knowing how small these tables are, the server would take to reading all of them.
    for table in ("dead_letters", "webhook_delivery_sagas"):
        await engine.sql(Words(engine).leave_alone(table))
    scene = Scene(engine, await engine.open(OPERATOR))
    subscription = await scene.subscription()
    for _ in range(0, size, 1_000):
        await scene.letters(subscription, 1_000)
    mass = await begin(scene.engine, EVERYTHING, 10_000, "ann")

    async def until(handled: int) -> None:
        while (stands := await look(scene.engine, mass)).handled < handled:
            await go_on(scene.engine, mass, min(MOST_AT_ONCE, handled - stands.handled))

    async def batch(operator: Engine) -> None:
        assert (await go_on(operator, mass, BATCH)).status is MassRequeueStatus.RUNNING

    async def reads() -> Reads:
        # What went before must have been counted.
        await scene.engine.close()
        await counters.settle(OPERATOR)
        found = await reads_of(counters, await engine.open(OPERATOR), batch)
        scene.engine = await engine.open(OPERATOR)
        return found

    found = {}
    for handled in (0, size // 2, size - 2 * BATCH):
        await until(handled)
        found[handled] = await reads()
    first = found[0]
    assert first.rows > BATCH
    for one in found.values():
        assert one.rows <= SLACK * first.rows + MORE_ROWS, found
        assert one.pages <= SLACK * first.pages + MORE_PAGES, found
    await until(size)
    made = "SELECT COUNT(*) FROM webhook_delivery_sagas WHERE generation = 1"
    assert await engine.value(made) == size
