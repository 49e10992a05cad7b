"""What a claim of tasks, its finish and a rescue read does not depend on how many tasks there are, of whatever kind.

Counted by the server, rows and pages, whether it knows its tables or not: ten priorities, as many tasks that are due,
of another time, of a type that nobody handles, and that have ended.
"""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tests.plans.counters import Counters, Reads, beyond, counters_of, reads_of
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.sessions import Session, connect
from tidings.db.engine import Engine
from tidings.decisions.finishing import Finish
from tidings.flow import OWNER
from tidings.model.task import TaskStatus
from tidings.roles.observer.depths import DepthObserver
from tidings.roles.rescuer.rescuer import Rescuer
from tidings.roles.task_worker.claiming import Claimer
from tidings.roles.task_worker.operations import ClaimedTask, Fence, TaskWorkerOperations

BATCH = 100
PRIORITIES = 10
# The same for every size: rows and pages.
BOUNDS = {
    "idle": Reads(rows=400, pages=1_000),
    "claim": Reads(rows=1_500, pages=6_000),
    "claim beside others": Reads(rows=1_500, pages=6_000),
    "finish": Reads(rows=1_500, pages=6_000),
    "beat": Reads(rows=1_000, pages=5_000),
    "rescue": Reads(rows=1_500, pages=6_000),
    "depths": Reads(rows=60_000, pages=90_000),
}
TABLE = "sys_pending_tasks"


class Past:
    """Tasks of every kind, `size` of each, made as the owner of the schema in a few statements."""

    def __init__(self, database: Database, owner: Session, size: int) -> None:
        self.size = size
        self._owner, self._words = owner, Words(database)
        self._keys = 0

    @classmethod
    async def of(cls, database: Database, size: int) -> "Past":
        past = cls(database, await connect(database.url(OWNER)), size)
        await past._owner.run(past._words.leave_alone(TABLE))
        return past

    async def happen(self) -> None:
        for biz_type, status, due_since in (
            ("A", 0, 1000),
            ("A", 0, -100_000_000),
            ("A", 3, -100_000_000),
            ("FUTURE", 0, -100_000_000),
            ("FOREIGN", 0, 1000),
            ("A", 2, 1000),
            ("A", 4, 1000),
        ):
            await self.add(biz_type, self.size, status=status, due_since=due_since)

    async def add(
        self, biz_type: str, count: int, status: int = 0, due_since: float = 1000, silent_for: float = 0
    ) -> None:
        """Spread over the priorities; no two due at the same moment."""
        self._keys += 1
        words = self._words
        due = words.later(words.ago(due_since), "seq", "microsecond")
        await self._owner.run(
            f"INSERT INTO {TABLE} (biz_type, biz_key, status, priority, payload, next_run_time, updated_at)"
            f" SELECT '{biz_type}', CONCAT('{self._keys}-', seq), {status}, MOD(seq, {PRIORITIES}), '{{}}', {due},"
            f" {words.ago(silent_for)} FROM {words.numbers(count)}"
        )

    async def analyse(self) -> None:
        await self._owner.run(self._words.analyse(TABLE))

    async def close(self) -> None:
        await self._owner.close()


class Tasks:
    """Lets the roles do one thing each, and counts what the server reads meanwhile."""

    def __init__(self, database: Database, past: Past, counters: Counters) -> None:
        self.past = past
        self._database, self._counters = database, counters
        self._claimed: tuple[ClaimedTask, ...] = ()

    async def reads_of_every_kind(self) -> dict[str, Reads]:
        worker = "task_worker"
        found = {
            "idle": await self._measured(worker, self._find_nothing),
            "claim": await self._measured(worker, lambda engine: self._claim(engine, wary=False)),
            "beat": await self._measured(worker, self._beat),
            "finish": await self._measured(worker, self._finish),
            "claim beside others": await self._measured(worker, lambda engine: self._claim(engine, wary=True)),
        }
        await self._measured(worker, self._finish)
        await self.past.add("A", BATCH, status=1, silent_for=3600)
        found["rescue"] = await self._measured("task_rescuer", self._rescue)
        found["depths"] = await self._measured("observer", self._look)
        return found

    async def experienced(self) -> Engine:
        """One whose session has claimed so often that it makes no new plans."""
        engine = await self._database.open("task_worker", size=1)
        for _ in range(8):
            await self.past.add("A", 2)
            await self._claim(engine, wary=False, count=2)
            await self._finish(engine, count=2)
        return engine

    async def reads_of_the_experienced(self, engine: Engine) -> dict[str, Reads]:
        return {"claim": await reads_of(self._counters, engine, lambda engine: self._claim(engine, wary=False))}

    async def _claim(self, engine: Engine, *, wary: bool, count: int = BATCH) -> None:
        claimer = Claimer(engine, "w")
        claimer._wary = int(wary)
        self._claimed = ()
        while len(self._claimed) < count:
            claim = await claimer.claim({"A": count, "FUTURE": count}, count - len(self._claimed))
            assert claim.tasks
            self._claimed += claim.tasks

    async def _find_nothing(self, engine: Engine) -> None:
        assert (await Claimer(engine, "w").claim({"FUTURE": BATCH, "NOBODY": BATCH}, BATCH)).tasks == ()

    async def _beat(self, engine: Engine) -> None:
        fences = [Fence(task.id, task.version, task.was) for task in self._claimed]
        assert await TaskWorkerOperations.step(engine, lambda one: one.beat(fences)) == BATCH

    async def _finish(self, engine: Engine, count: int = BATCH) -> None:
        half, rest = self._claimed[: count // 2], self._claimed[count // 2 :]
        ends = [Finish(TaskStatus.FAIL_RETRY, "boom", 3_600_000.0)] * len(rest)

        async def finish(operations: TaskWorkerOperations) -> int:
            return await operations.succeed(half) + await operations.retry(rest, ends)

        assert await TaskWorkerOperations.step(engine, finish) == count

    async def _rescue(self, engine: Engine) -> None:
        assert (await Rescuer(engine, 600, {"FUTURE": 60}, batch=BATCH, patience=0).step()).tasks == BATCH

    async def _look(self, engine: Engine) -> None:
        depths = await DepthObserver.step(engine, lambda observer: observer.tasks(5_000))
        assert [one.biz_type for one in depths] == ["A", "FOREIGN", "FUTURE"]

    async def _measured(self, role: str, work: Callable[[Engine], Awaitable[None]]) -> Reads:
        return await reads_of(self._counters, await self._database.open(role), work)


@pytest.fixture
async def tasks(throwaway: Database, request: pytest.FixtureRequest) -> AsyncIterator[Tasks]:
    past = await Past.of(throwaway, request.param)
    counters = await counters_of(throwaway)
    yield Tasks(throwaway, past, counters)
    await past.close()
    await counters.close()


@pytest.mark.parametrize(
    "tasks",
    [
        pytest.param(1_000, marks=[pytest.mark.slow], id="a_thousand"),
        pytest.param(100_000, marks=[pytest.mark.full, pytest.mark.timeout(600)], id="a_hundred_thousand"),
        pytest.param(1_000_000, marks=[pytest.mark.full, pytest.mark.timeout(3_600)], id="a_million"),
    ],
    indirect=True,
)
async def test_what_is_read_does_not_depend_on_how_many_tasks_there_are(tasks: Tasks) -> None:
    """Rows read per claim the same at 1 thousand and 1 million, 10 priorities, on both engines."""
    experienced = await tasks.experienced()
    await tasks.past.happen()
    wrong = beyond(await tasks.reads_of_the_experienced(experienced), BOUNDS, "planned while there was little")
    wrong += beyond(await tasks.reads_of_every_kind(), BOUNDS, "never analysed")
    await tasks.past.analyse()
    wrong += beyond(await tasks.reads_of_every_kind(), BOUNDS, "analysed")
    assert not wrong
