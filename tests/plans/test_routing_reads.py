"""A pass of the router reads as many rows and pages in a log of a million events as in one of ten thousand.

Counted by the server. Whether it knows its tables makes no difference, nor whether the router knew them when they were
empty: what is read depends on what is to be done, and on nothing else.
"""

from collections.abc import AsyncIterator

import pytest

from tests.plans.counters import Counters, Reads, beyond, counters_of
from tests.plans.routed_past import Past
from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.roles.router.passes import Outcome
from tidings.roles.router.router import Router

BATCH = 200
FOUND_LATE = 20

# The same for every size: rows and pages.
BOUNDS = {
    "idle": Reads(rows=60, pages=100),
    "new events": Reads(rows=2_000, pages=12_000),
    "events decided before": Reads(rows=1_000, pages=1_000),
    "narrow holes": Reads(rows=600, pages=2_500),
    "a wide hole": Reads(rows=600, pages=1_000),
    "a wide hole with nothing in it": Reads(rows=60, pages=150),
}
SUBSCRIPTIONS = 10_000
BOUND_OF_RELOADING = Reads(rows=SUBSCRIPTIONS + 60, pages=1_000)


class Passes:
    """Lets routers pass over a past, and counts what the server reads meanwhile."""

    def __init__(self, database: Database, past: Past, counters: Counters) -> None:
        self.past = past
        self._database, self._counters = database, counters
        self._rounds = 0

    async def router(self) -> tuple[Router, Engine]:
        engine = await self._database.open("event_router")
        return Router(engine, batch=BATCH), engine

    async def experienced_router(self) -> tuple[Router, Engine]:
        """One that has passed so often that its session makes no new plans."""
        router, engine = await self.router()
        for _ in range(8):
            await self.past.publish(1)
            await router.step()
        return router, engine

    async def reads(self, router: Router, engine: Engine, outcome: Outcome = Outcome.ROUTED) -> Reads:
        """Of its next pass, which is its last one: what a session has read is counted for sure when it has ended."""
        await self._counters.start()
        done = await router.step()
        assert done.outcome is outcome, done
        await router.close()
        await engine.close()
        return await self._counters.read("event_router")

    async def reads_of_every_kind(self) -> dict[str, Reads]:
        past, found = self.past, {}
        await past.stand_at_the_end()
        found["idle"] = await self.reads(*await self.router(), Outcome.IDLE)
        await past.publish(BATCH)
        found["new events"] = await self.reads(*await self.router())
        await past.stand_at((past.first + past.gap[0]) // 2)
        found["events decided before"] = await self.reads(*await self.router())
        await past.stand_at_the_end()
        await past.leave_holes(*((number, number + 1) for number in past.undecided(FOUND_LATE, self._rounds)))
        found["narrow holes"] = await self.reads(*await self.router())
        await past.forget_holes()
        await past.leave_holes((past.first, past.gap[0] - 1))
        found["a wide hole"] = await self.reads(*await self.router())
        await past.forget_holes()
        await past.leave_holes(past.gap)
        found["a wide hole with nothing in it"] = await self.reads(*await self.router())
        await past.forget_holes()
        self._rounds += 1
        return found


@pytest.fixture
async def passes(throwaway: Database, request: pytest.FixtureRequest) -> AsyncIterator[Passes]:
    past = await Past.of(throwaway, request.param)
    counters = await counters_of(throwaway)
    await past.open()
    yield Passes(throwaway, past, counters)
    await past.close()
    await counters.close()


def of_sizes(**sizes: list[pytest.MarkDecorator]) -> pytest.MarkDecorator:
    numbers = {"ten_thousand": 10_000, "a_hundred_thousand": 100_000, "a_million": 1_000_000}
    params = [pytest.param(numbers[name], marks=marks, id=name) for name, marks in sizes.items()]
    return pytest.mark.parametrize("passes", params, indirect=True)


@of_sizes(
    ten_thousand=[pytest.mark.slow],
    a_hundred_thousand=[pytest.mark.slow],
    a_million=[pytest.mark.full, pytest.mark.timeout(1_800)],
)
async def test_what_a_pass_reads_does_not_depend_on_the_length_of_the_log(passes: Passes) -> None:
    experienced = await passes.experienced_router()
    await passes.past.happen()
    await passes.past.publish(BATCH)
    wrong = beyond({"new events": await passes.reads(*experienced)}, BOUNDS, "planned while there was nothing")
    wrong += beyond(await passes.reads_of_every_kind(), BOUNDS, "never analysed")
    await passes.past.analyse()
    wrong += beyond(await passes.reads_of_every_kind(), BOUNDS, "analysed")
    assert not wrong


@of_sizes(ten_thousand=[pytest.mark.slow])
async def test_a_change_of_configuration_costs_one_look_at_each_subscription(passes: Passes) -> None:
    """And none at the log, however many subscriptions there are."""
    await passes.past.happen()
    await passes.past.subscribe(SUBSCRIPTIONS, "other.*")
    reads = await passes.reads(*await passes.router(), Outcome.IDLE)
    assert not reads.is_beyond(BOUND_OF_RELOADING), reads
