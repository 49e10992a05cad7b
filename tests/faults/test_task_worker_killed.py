"""A task worker or a rescuer that dies anywhere leaves no task undone, and none that ran more often than it says."""

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any, Literal

import pytest

from tests.roles.task_worker.scene import Scene
from tests.support.database import Database
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tests.support.waiting import eventually
from tidings.db.statements import load_statements
from tidings.errors import DatabaseError
from tidings.roles.rescuer.rescuer import Rescuer
from tidings.roles.task_worker.worker import TaskWorker
from tidings.tasks import Fail, Handlers, Retry, TaskContext

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("mortal")]


@pytest.fixture
def scene(engine: Database) -> Scene:
    return Scene(engine)


class Story:
    """Tasks that end well, for good and for a while, the same again and again."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.first = 0
        self.runs: Counter[int] = Counter()
        self.handlers = Handlers()
        self.handlers.task("WELL")(self._run)
        self.handlers.task("NEVER")(self._run)
        self.handlers.task("LATER")(self._run)

    async def _run(self, payload: object, context: TaskContext) -> None:
        self.runs[context.id] += 1
        if context.biz_type == "NEVER":
            raise Fail("never")
        if context.biz_type == "LATER":
            raise Retry("later", after=36_000)

    async def begin(self) -> None:
        self.runs.clear()
        tasks = [await self.scene.submit(biz_type, 2) for biz_type in ("WELL", "NEVER", "LATER")]
        self.first = tasks[0][0]

    async def finish(self) -> None:
        """What the dead one had claimed grows silent; a rescuer and another worker do the rest."""
        scene = self.scene
        rows = await scene.sql("SELECT id FROM sys_pending_tasks WHERE status = 1")
        if rows:
            await scene.grow_silent(*(row["id"] for row in rows))
        await Rescuer(await scene.database.open("task_rescuer"), 600, every=0, patience=0).step()
        await scene.work_off(await scene.worker(self.handlers))
        await scene.database.close()

    async def state(self) -> list[Any]:
        rows = await self.scene.sql(
            "SELECT biz_type, status, result_msg, CASE WHEN status = 3 THEN 1 ELSE 0 END AS waits"
            f" FROM sys_pending_tasks WHERE id >= {self.first} ORDER BY id"
        )
        return [tuple(row.values()) for row in rows]

    async def unexplained(self) -> list[str]:
        """Runs that no retry explains."""
        rows = await self.scene.sql(f"SELECT id, retry_count FROM sys_pending_tasks WHERE id >= {self.first}")
        return [
            f"task {row['id']} ran {self.runs[row['id']]} times and says {row['retry_count']}"
            for row in rows
            if self.runs[row["id"]] > row["retry_count"] + 1
        ]


async def until_dead(worker: TaskWorker, proxy: FaultProxy) -> None:
    """Works until the fault has struck; then it is gone, in the middle of whatever it was at."""
    with suppress(DatabaseError):
        for _ in range(30):
            await worker.step()
            if proxy.fired:
                break
            await eventually(lambda: worker.in_flight == 0, what="the handlers")
    await proxy.until_fired()
    worker._heartbeat._stopping.set()
    runs, outbox = worker._hands._running, worker._finisher._outbox._work
    tasks = [task for task in (*(run.work for run in runs), outbox) if task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("when", ["after", pytest.param("before", marks=pytest.mark.full)])
async def test_a_task_worker_that_dies_at_any_statement_leaves_nothing_undone(
    scene: Scene, proxy: FaultProxy, when: Literal["before", "after"]
) -> None:
    story = Story(scene)
    await story.begin()
    undisturbed = await scene.worker(story.handlers, engine=await scene.database.open("task_worker", proxy, size=3))
    await scene.work_off(undisturbed)
    expected, seen = await story.state(), [*dict.fromkeys(proxy.seen)]
    assert expected == [
        *[("WELL", 2, "OK", 0)] * 2,
        *[("NEVER", 4, "never", 0)] * 2,
        *[("LATER", 3, "later", 1)] * 2,
    ]
    everything = load_statements("tidings.roles.task_worker", undisturbed._claimer._engine.dialect).keys()
    # Asked only by who is alone for a while, lost a race or a fence, lives long or gives back.
    seldom = {"candidates", "claimed", "finished", "beat", "give_back"}
    assert {name.removeprefix("task_worker.") for name in seen} == everything - seldom | {"begin", "commit"}
    wrong = []
    for fault in [Fault(name, CUT, when) for name in seen]:
        await story.begin()
        proxy.clear()
        proxy.arm(fault)
        engine = await scene.database.open("task_worker", proxy, size=3)
        await until_dead(await scene.worker(story.handlers, engine=engine), proxy)
        await engine.close()
        await story.finish()
        if (state := await story.state()) != expected:
            wrong.append(f"{fault}: {state} instead of {expected}")
        wrong += [f"{fault}: {one}" for one in await story.unexplained()]
    assert not wrong


async def test_a_claim_whose_answer_was_lost_is_given_back_uncounted(scene: Scene, proxy: FaultProxy) -> None:
    """The worker lives on, and knows that it may have got what it was never told of."""
    tasks = await scene.submit("WELL", 5)
    story = Story(scene)
    worker = await scene.worker(story.handlers, engine=await scene.database.open("task_worker", proxy, size=3))
    proxy.arm(Fault("task_worker.commit", CUT, "after"))
    with suppress(DatabaseError):
        await worker.step()
    assert proxy.fired
    assert await scene.statuses() == {1: 5}
    await scene.work_off(worker)
    rows = [await scene.task(task) for task in tasks]
    # Claimed, given back, claimed, ended: each a move of its own.
    assert [(row["status"], row["version"], row["retry_count"]) for row in rows] == [(2, 4, 0)] * 5
    assert [story.runs[task] for task in tasks] == [1] * 5


@pytest.mark.parametrize("statement", ["succeed", "retry", "bury", "commit"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_results_that_could_not_be_stored_are_kept_and_stored_once(
    scene: Scene, proxy: FaultProxy, statement: str, when: Literal["before", "after"]
) -> None:
    story = Story(scene)
    await story.begin()
    worker = await scene.worker(story.handlers, engine=await scene.database.open("task_worker", proxy, size=3))
    # The second commit is that of the results.
    proxy.arm(Fault(f"task_worker.{statement}", CUT, when, nth=2 if statement == "commit" else 1))
    await worker.step()
    await eventually(lambda: bool(proxy.fired) and not worker._finisher.unheard, what="the results to be heard")
    await worker.close()
    assert worker.lost_fences == 0
    assert sorted(story.runs.values()) == [1] * 6
    rows = await scene.sql("SELECT status, retry_count, version FROM sys_pending_tasks ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [(2, 0, 2)] * 2 + [(4, 0, 2)] * 2 + [(3, 1, 2)] * 2


async def test_a_rescuer_that_dies_at_any_statement_counts_each_rescue_once(scene: Scene, proxy: FaultProxy) -> None:
    async def begin() -> int:
        tasks = [(await scene.submit(status=1, retry_count=count))[0] for count in (0, 2, 3)]
        await scene.grow_silent(*tasks)
        await scene.submit(status=1)
        return tasks[0]

    async def finish(first: int) -> list[Any]:
        rescuer = Rescuer(await scene.database.open("task_rescuer"), 600, every=0, patience=0)

        async def is_over() -> bool:
            """What a session that was cut off has locked is passed over until the server has noticed."""
            await rescuer.step()
            return len(await scene.sql(f"SELECT id FROM sys_pending_tasks WHERE id >= {first} AND status = 1")) == 1

        await eventually(is_over, what="all but the one that is alive to be rescued")
        await scene.database.close()
        columns = "status, retry_count, version, result_msg"
        rows = await scene.sql(f"SELECT {columns} FROM sys_pending_tasks WHERE id >= {first} ORDER BY id")
        return [tuple(row.values()) for row in rows]

    first = await begin()
    engine = await scene.database.open("task_rescuer", proxy, size=3)
    await Rescuer(engine, 600, {"B": 60}, every=0, patience=0).step()
    await engine.close()
    seen = [*dict.fromkeys(proxy.seen)]
    everything = load_statements("tidings.roles.rescuer", engine.dialect).keys()
    assert everything <= {name.removeprefix("rescuer.") for name in seen}
    expected = await finish(first)
    late = "Task timed out (Worker crashed?)"
    assert expected == [(3, 1, 1, late), (3, 3, 1, late), (4, 3, 1, f"Max retries exceeded: {late}"), (1, 0, 0, None)]
    wrong = []
    for fault in [Fault(name, CUT, when) for name in seen for when in ("before", "after")]:
        first = await begin()
        proxy.clear()
        proxy.arm(fault)
        engine = await scene.database.open("task_rescuer", proxy, size=3)
        # A session that was lost before it was asked anything is replaced without a word.
        with suppress(DatabaseError):
            await Rescuer(engine, 600, {"B": 60}, every=0, patience=0).step()
        assert proxy.fired == [fault]
        await engine.close()
        if (state := await finish(first)) != expected:
            wrong.append(f"{fault}: {state}")
    assert not wrong
