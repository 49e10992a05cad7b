"""A retention that dies anywhere in its step has removed whole stories or nothing of them, and counted what went."""

import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from tests.faults.ending import Ending
from tests.roles.retention.scene import KEEP, LONG_AGO, Scene
from tests.support.database import Database
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.db.statements import load_statements
from tidings.errors import DatabaseError
from tidings.roles.retention import retention
from tidings.roles.retention.retention import Retention

pytestmark = pytest.mark.slow

ROLE = "retention"
COMMIT = f"{ROLE}.commit"
# Only what was begun a round ago is begun anew.
NOT_OF_A_STEP = {"begin_walk"}
WRITING = ("remove", "move", "add", "commit")


@dataclass(frozen=True)
class State(Ending):
    """What is left, and what was counted."""

    stories: int
    rows: dict[str, int]
    tasks: int
    counted: dict[str, int]


class Story:
    """Two stories to be removed, one to be kept, a task of each kind: told again and again."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._rows: dict[str, int] = {}
        self._counted: dict[str, int] = {}

    async def begin(self) -> None:
        """What was kept the last time is still there, and is kept again."""
        scene = self.scene
        for table in ("retention_walks", "route_worker_cursors", "sys_pending_tasks", "sys_pending_tasks_history"):
            await scene.run(f"DELETE FROM {table}")
        self._rows, self._counted = await scene.counts(), await self._totals()
        await scene.finished()
        event = await scene.finished()
        await scene.attempt(event, kind="task")
        await scene.task("another", "alarm")
        kept = await scene.event()
        await scene.attempt(kept, kind="task")
        await scene.saga(kept, "Pending", jobs=0)
        await scene.task(kept)
        await scene.archived(1, 10**15)
        await scene.routed_up_to(kept)

    async def finish(self, one: Retention | None = None) -> None:
        finishing = one or Retention(await self.scene.database.open("retention"), KEEP)

        async def is_idle() -> bool:
            # A step that was cut may hold the walk until the server has noticed.
            return not await finishing.step() and (await self.state()).stories == 1

        await eventually(is_idle, what="retention to finish")

    async def state(self) -> State:
        rows = {table: count - self._rows[table] for table, count in (await self.scene.counts()).items()}
        counted = {name: count - self._counted.get(name, 0) for name, count in (await self._totals()).items()}
        tasks = await self.scene.value("SELECT COUNT(*) FROM sys_pending_tasks_history")
        return State(rows["events"], rows, tasks, counted)

    async def _totals(self) -> dict[str, int]:
        return (await self.scene.totals()).get(LONG_AGO[:10], {})


@pytest.fixture
async def story(engine: Database, monkeypatch: pytest.MonkeyPatch) -> Story:
    monkeypatch.setattr(retention, "PAUSE", 0)
    return Story(await Scene.of(engine))


async def undisturbed(story: Story, attacked: Engine, proxy: FaultProxy) -> tuple[State, list[str]]:
    """How the story ends, and every statement that retention sent until then."""
    await story.begin()
    proxy.clear()
    await story.finish(Retention(attacked, KEEP))
    return await story.state(), proxy.seen


async def half_removed(story: Story) -> list[str]:
    """Rows without their event or saga, and stories that went uncounted or were counted and are there."""
    state = await story.state()
    problems = [f"{table} without its story" for table in await story.scene.orphans()]
    if state.counted.get("events", 0) != 3 - state.stories:
        problems.append(f"{3 - state.stories} stories went, {state.counted.get('events', 0)} were counted")
    if state.counted.get("tasks", 0) != 1 - state.tasks:
        problems.append("a task went uncounted")
    return problems


async def test_the_story_has_every_statement_of_a_step_in_it(story: Story, attacked: Engine, proxy: FaultProxy) -> None:
    state, seen = await undisturbed(story, attacked, proxy)
    everything = load_statements("tidings.roles.retention", attacked.dialect).keys() - NOT_OF_A_STEP
    assert everything <= {name.removeprefix("retention.") for name in seen}
    assert (state.stories, state.tasks, state.counted["events"]) == (1, 0, 2)


@pytest.mark.timeout(300)
async def test_a_retention_that_dies_at_any_statement_has_removed_whole_stories_or_nothing(
    story: Story, attacked: Engine, proxy: FaultProxy, mortal: None
) -> None:
    """After each statement, and before each that writes; commits also the second and third time."""
    expected, seen = await undisturbed(story, attacked, proxy)
    names = [name for name in dict.fromkeys(seen) if name.startswith("retention.")]
    faults = [Fault(name, CUT, "after") for name in names]
    faults += [Fault(name, CUT, "before") for name in names if any(word in name for word in WRITING)]
    faults += [Fault(COMMIT, CUT, when, nth=nth) for when in ("before", "after") for nth in (2, 3)]
    wrong: list[Any] = []
    for fault in faults:
        await story.begin()
        proxy.clear()
        proxy.arm(fault)
        one = Retention(attacked, KEEP)
        with suppress(DatabaseError):
            while await one.step():
                pass
        assert proxy.fired == [fault]
        wrong += [f"{fault}: {problem}" for problem in await half_removed(story)]
        await story.finish()
        wrong += [f"{fault}: {difference}" for difference in (await story.state()).differences(expected)]
    assert not wrong


async def test_a_process_that_is_killed_while_it_removes_has_removed_whole_stories_or_nothing(
    engine: Database, story: Story, attacked: Engine, proxy: FaultProxy, start: Callable[[Process], Process]
) -> None:
    """The real process and SIGKILL."""
    expected, _ = await undisturbed(story, attacked, proxy)
    environment = engine.environment() | {
        "TIDINGS_DATABASE_URL_RETENTION": proxy.url(engine.url("retention")),
        "TIDINGS_KEEP_FINISHED": "30d",
    }
    wrong = []
    for name in ("remove_events", "add_totals"):
        await story.begin()
        proxy.clear()
        proxy.arm(fault := Fault(f"retention.{name}", KILL(), "after"))
        process = start(tidings("run", "retention", **environment))
        await proxy.until_fired(30)
        assert process.wait() == -signal.SIGKILL, process.output
        wrong += [f"{fault}: {problem}" for problem in await half_removed(story)]
        await story.finish()
        wrong += [f"{fault}: {difference}" for difference in (await story.state()).differences(expected)]
    assert not wrong
