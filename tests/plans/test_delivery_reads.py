"""What a claim, a start, a result, a burial and a reset read does not depend on how much there is or was.

Counted by the server, rows and pages, whether it knows its tables or not, with a long past and a long backlog; and
while somebody holds a transaction open from before, so that nothing of what has changed since can be tidied up.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.plans.counters import Counters, Reads, beyond, counters_of, reads_of
from tests.plans.delivery_past import Past
from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.model.saga import SagaStatus
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.observer.filters import LetterFilter, SagaFilter
from tidings.roles.observer.pages import PageObserver
from tidings.roles.orchestrator import hints as hints_module
from tidings.roles.orchestrator.hints import EPOCH, SLACK, Hints
from tidings.roles.orchestrator.orchestrator import Advanced, Orchestrator
from tidings.roles.worker.operations import WorkerOperations

BATCH = 100
POLICY = RetryPolicy(9, Backoff(3600, 3600, 0))
LAST_ATTEMPT = RetryPolicy(1, POLICY.backoff)
ROOM = FlowLimits(active_jobs_max=20_000, window_start=2_000, window_max=2_000)
NO_ROOM = FlowLimits(active_jobs_max=0, window_start=2_000, window_max=2_000)

# The same for every size: rows and pages.
BOUNDS = {
    "idle": Reads(rows=2_000, pages=3_000),
    "start": Reads(rows=3_000, pages=10_000),
    "apply": Reads(rows=3_000, pages=10_000),
    "bury": Reads(rows=3_000, pages=10_000),
    "claim": Reads(rows=1_000, pages=5_000),
    "reset": Reads(rows=1_000, pages=5_000),
    "all at once": Reads(rows=3_000, pages=15_000),
}


class Deliveries:
    """Lets the roles do one thing each on a past, and counts what the server reads meanwhile."""

    def __init__(self, database: Database, past: Past, counters: Counters) -> None:
        self.past = past
        self._database, self._counters = database, counters
        self._hints = Hints()
        self._ready_at = EPOCH

    async def reads_of_every_kind(self, *, hinted: bool = False) -> dict[str, Reads]:
        """With hints, as they are after a first look from the beginning; else everything looks from there."""
        past = self.past
        found = {"idle": await self._step(Advanced(), POLICY, ROOM, hinted)}
        for lane in (1, 3):
            await past.publish(lane, BATCH // 2)
        found["start"] = await self._step(Advanced(started=BATCH), POLICY, ROOM, hinted)
        await past.settle()
        await past.report(good=BATCH // 2, bad=BATCH // 2)
        half = Advanced(completed=BATCH // 2, retried=BATCH // 2)
        found["apply"] = await self._step(half, POLICY, NO_ROOM, hinted)
        await past.report(good=0, bad=BATCH)
        found["bury"] = await self._step(Advanced(buried=BATCH), LAST_ATTEMPT, NO_ROOM, hinted)
        await past.report(good=0, stale=BATCH)
        found["reset"] = await self._measured("lease_cleaner", self._reset)
        await past.settle()
        await past.queue(BATCH)
        if not hinted:
            self._ready_at = EPOCH
        found["claim"] = await self._measured("job_worker", self._claim)
        await past.settle()
        return found

    async def reads_beside_hanging_lanes(self) -> dict[str, Reads]:
        """Of one orchestrator: its first step, one with nothing to do, one that starts a hundred."""
        engine = await self._database.open("saga_orchestrator")
        one = Orchestrator(engine, POLICY, ROOM, batch=BATCH)
        await engine.close()
        found = {"first look": await self._step_of(one, Advanced())}
        found["idle"] = await self._step_of(one, Advanced())
        for lane in (1, 3):
            await self.past.publish(lane, BATCH // 2)
        found["start"] = await self._step_of(one, Advanced(started=BATCH))
        return found

    async def _step_of(self, one: Orchestrator, expected: Advanced) -> Reads:
        """Every session counts for itself, and only at its end."""

        async def work(engine: Engine) -> None:
            one._engine = engine
            assert await one.step() == expected

        return await self._measured("saga_orchestrator", work)

    async def reads_of_a_claim(self, waiting: int) -> Reads:
        """Where so many jobs wait."""
        await self.past.queue(waiting)
        return await self._measured("job_worker", self._claim)

    async def reads_of_a_look(self, look: Callable[[PageObserver], Awaitable[object]]) -> Reads:
        async def work(engine: Engine) -> None:
            await PageObserver.step(engine, look)

        return await self._measured("observer", work)

    async def experienced(self, role: str) -> Engine:
        """One whose session has done so much of everything that it makes no new plans."""
        engine = await self._database.open(role, size=1)
        for _ in range(8):
            if role == "saga_orchestrator":
                await self._work_for_all(2)
                await self._do_all(engine, 2)
            else:
                await self.past.queue(2)
                await self._claim(engine)
            await self.past.settle()
        return engine

    async def reads_of_the_experienced(self, orchestrator: Engine, worker: Engine) -> dict[str, Reads]:
        """All kinds of work in one step, and a claim; each is the last that its session does."""
        await self._work_for_all(BATCH // 2)
        found = {"claim": await reads_of(self._counters, worker, self._claim)}
        found["all at once"] = await reads_of(
            self._counters, orchestrator, lambda engine: self._do_all(engine, BATCH // 2)
        )
        return found

    async def _work_for_all(self, count: int) -> None:
        await self.past.publish(3, count)
        await self.past.report(good=count, bad=count)
        await self.past.queue(count)

    async def _do_all(self, engine: Engine, count: int) -> None:
        done = await Orchestrator(engine, LAST_ATTEMPT, ROOM, batch=3 * count).step()
        assert done == Advanced(completed=count, buried=count, started=count)

    async def warm_up(self) -> None:
        """One look from the beginning, at a little work of each kind; what it learns is kept."""
        for lane in (1, 3):
            await self.past.publish(lane, 2)
        await self.past.report(good=1, bad=1)
        engine = await self._database.open("saga_orchestrator")
        one = self._orchestrator(engine, POLICY, ROOM)
        for _ in range(3):
            await one.step()
        await engine.close()
        await self.past.settle()
        await self.past.queue(2)
        engine = await self._database.open("job_worker")
        await self._claim(engine)
        await engine.close()
        await self.past.settle()

    def _orchestrator(self, engine: Engine, policy: RetryPolicy, limits: FlowLimits) -> Orchestrator:
        one = Orchestrator(engine, policy, limits, batch=BATCH)
        one._hints = self._hints
        return one

    async def _step(self, expected: Advanced, policy: RetryPolicy, limits: FlowLimits, hinted: bool) -> Reads:
        if not hinted:
            self._hints = Hints()

        async def work(engine: Engine) -> None:
            assert await self._orchestrator(engine, policy, limits).step() == expected

        return await self._measured("saga_orchestrator", work)

    async def _measured(self, role: str, work: Callable[[Engine], Awaitable[None]]) -> Reads:
        return await reads_of(self._counters, await self._database.open(role), work)

    async def _reset(self, engine: Engine) -> None:
        assert (await Cleaner(engine, 3, batch=BATCH, patience=0).step()).reset == BATCH

    async def _claim(self, engine: Engine) -> None:
        async def claim(operations: WorkerOperations) -> None:
            ready = await operations.pending_jobs(self._ready_at, BATCH)
            await operations.lease_jobs([*ready], 60, "w", 1)
            self._ready_at = max(ready.values()) - SLACK

        await WorkerOperations.step(engine, claim)


@pytest.fixture
async def deliveries(throwaway: Database, request: pytest.FixtureRequest) -> AsyncIterator[Deliveries]:
    past = await Past.of(throwaway, request.param)
    counters = await counters_of(throwaway)
    yield Deliveries(throwaway, past, counters)
    await past.close()
    await counters.close()


def of_sizes(**sizes: list[pytest.MarkDecorator]) -> pytest.MarkDecorator:
    numbers = {"a_thousand": 1_000, "a_hundred_thousand": 100_000, "a_million": 1_000_000}
    params = [pytest.param(numbers[name], marks=marks, id=name) for name, marks in sizes.items()]
    return pytest.mark.parametrize("deliveries", params, indirect=True)


SIZES = of_sizes(
    a_thousand=[pytest.mark.slow],
    a_hundred_thousand=[pytest.mark.full, pytest.mark.timeout(600)],
    a_million=[pytest.mark.full, pytest.mark.timeout(3_600)],
)


@SIZES
async def test_what_is_read_does_not_depend_on_the_past_nor_on_the_backlog(deliveries: Deliveries) -> None:
    """r01 §10.1, r02 §5.1: no table scan, and nothing that grows."""
    experienced = [await deliveries.experienced(role) for role in ("saga_orchestrator", "job_worker")]
    await deliveries.past.happen()
    wrong = beyond(await deliveries.reads_of_the_experienced(*experienced), BOUNDS, "planned while there was little")
    await deliveries.past.settle()
    wrong += beyond(await deliveries.reads_of_every_kind(), BOUNDS, "never analysed")
    await deliveries.past.analyse()
    wrong += beyond(await deliveries.reads_of_every_kind(), BOUNDS, "analysed")
    wrong += beyond({"claim": await deliveries.reads_of_a_claim(deliveries.past.size)}, BOUNDS, "with many waiting")
    assert not wrong


@SIZES
async def test_a_transaction_that_is_held_open_makes_nothing_slower(
    deliveries: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the hints; the look from the beginning, which is the dear one then, has its own small part of the time."""
    await deliveries.past.hold_a_transaction_open()
    await deliveries.past.happen()
    await deliveries.past.churn()
    monkeypatch.setattr(hints_module, "SECONDS_BETWEEN_SWEEPS", 3600.0)
    await deliveries.warm_up()
    found = await deliveries.reads_of_every_kind(hinted=True)
    # A cleaner always looks from the beginning.
    del found["reset"]
    assert not beyond(found, BOUNDS, "under an old snapshot")


LANES_THAT_HANG = 500
BOUNDS_BESIDE_THEM = {
    # A first look, which learns all windows; what it costs has to do with their number, not with what waits in them.
    "first look": Reads(rows=8_000, pages=25_000),
    "idle": Reads(rows=5_000, pages=8_000),
    "start": Reads(rows=5_000, pages=12_000),
}


@SIZES
async def test_neither_lanes_that_hang_nor_what_they_hold_make_a_step_dearer(deliveries: Deliveries) -> None:
    """Each of them has one attempt under way and no room for more; a paused lane holds the oldest of all."""
    await deliveries.past.publish(2, deliveries.past.size, due="2019-01-01")
    await deliveries.past.hang(LANES_THAT_HANG)
    found = await deliveries.reads_beside_hanging_lanes()
    assert not beyond(found, BOUNDS_BESIDE_THEM, f"beside {LANES_THAT_HANG} that hang")


PAGE = 50
BOUND_OF_A_PAGE = Reads(rows=3_000, pages=3_000)


@of_sizes(a_thousand=[pytest.mark.slow], a_hundred_thousand=[pytest.mark.full, pytest.mark.timeout(600)])
async def test_a_page_of_any_list_is_all_that_is_read(deliveries: Deliveries) -> None:
    """Of sagas and of dead letters, as the command line shows them."""
    await deliveries.past.happen()
    await deliveries.past.give_up()
    lists: dict[str, Callable[[PageObserver], Awaitable[object]]] = {
        "sagas": lambda observer: observer.sagas(SagaFilter(), PAGE, None),
        "a page of sagas": lambda observer: observer.sagas(SagaFilter(), PAGE, [500]),
        "sagas of an event": lambda observer: observer.sagas_of_event(7, "", PAGE, None),
        "what waits": lambda observer: observer.open_sagas(SagaStatus.PENDING, 0, PAGE, None),
        "what is under way": lambda observer: observer.open_sagas(SagaStatus.IN_PROGRESS, 0, PAGE, None),
        "what waits for one": lambda observer: observer.open_sagas(SagaStatus.PENDING_RETRY, 1, PAGE, None),
        "what waits for nobody": lambda observer: observer.open_sagas(SagaStatus.PENDING_RETRY, 3, PAGE, None),
        "a saga": lambda observer: observer.saga(7),
        "dead letters": lambda observer: observer.dead_letters(LetterFilter(), PAGE, None),
        "dead letters of one": lambda observer: observer.dead_letters(LetterFilter(subscription_id=3), PAGE, None),
        "a dead letter": lambda observer: observer.dead_letter(7),
    }
    wrong = []
    for known in (False, True):
        if known:
            await deliveries.past.analyse()
        for name, look in lists.items():
            reads = await deliveries.reads_of_a_look(look)
            if reads.is_beyond(BOUND_OF_A_PAGE):
                wrong.append(f"{name}, {'analysed' if known else 'never analysed'}: {reads}")
    assert not wrong
