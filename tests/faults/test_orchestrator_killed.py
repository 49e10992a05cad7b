"""An orchestrator that dies anywhere in its step has done all of the work in the end, and done it once.

Above all a saga is never dead without its dead letter, and no result is marked that its saga does not know.
"""

import datetime
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Literal

import pytest

from tests.faults.delivery_story import LIMITS, POLICY, State, Story
from tests.support.database import Database
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy
from tests.support.processes import Process, tidings
from tidings.db import engine as engine_module
from tidings.db.engine import Engine
from tidings.db.statements import load_statements
from tidings.decisions.advancing import Buried
from tidings.errors import DatabaseError
from tidings.roles.orchestrator import hints as hints_module
from tidings.roles.orchestrator.operations import OrchestratorOperations
from tidings.roles.orchestrator.orchestrator import Orchestrator

pytestmark = pytest.mark.slow

ROLE = "saga_orchestrator"
COMMIT = f"{ROLE}.commit"
WRITING = ("mark_applied", "complete_sagas", "retry_sagas", "bury_sagas", "write_dead_letters", "insert_jobs")
When = Literal["before", "after"]


@pytest.fixture
async def story(engine: Database) -> AsyncIterator[Story]:
    told = await Story.of(engine)
    yield told
    await told.close()


async def undisturbed(story: Story, attacked: Engine, proxy: FaultProxy) -> tuple[State, list[str]]:
    """How the story ends, and every statement that the orchestrator sent until then."""
    await story.begin()
    proxy.clear()
    one = Orchestrator(attacked, POLICY, LIMITS)
    await story.finish(one)
    await one.step()  # which looks for news only
    return await story.state(), proxy.seen


async def test_the_story_has_every_statement_of_a_step_in_it(story: Story, attacked: Engine, proxy: FaultProxy) -> None:
    state, seen = await undisturbed(story, attacked, proxy)
    everything = load_statements("tidings.roles.orchestrator", attacked.dialect).keys()
    assert {name.removeprefix("orchestrator.") for name in seen} == everything | {"saga_orchestrator.begin", COMMIT}
    assert [status for _, status, *_ in state.sagas] == [
        *["InProgress"] * 5,
        "PendingRetry",
        "DeadLettered",
        *["Completed"] * 2,
        *["PendingRetry"] * 2,
        *["DeadLettered"] * 2,
        "Completed",
    ]


async def test_an_orchestrator_that_dies_at_any_statement_leaves_nothing_undone_and_nothing_doubled(
    story: Story, attacked: Engine, proxy: FaultProxy, mortal: None
) -> None:
    """Before each statement and after it; what was half done before the death is not there at all."""
    expected, seen = await undisturbed(story, attacked, proxy)
    faults = [Fault(name, CUT, when) for name in dict.fromkeys(seen) for when in ("before", "after")]
    # The second and third transaction of a step, and the second burial.
    faults += [Fault(COMMIT, CUT, when, nth) for when in ("before", "after") for nth in (2, 3)]
    faults.append(Fault("orchestrator.write_dead_letters", CUT, "after", nth=2))
    wrong = []
    for fault in faults:
        await story.begin()
        proxy.clear()
        proxy.arm(fault)
        one = Orchestrator(attacked, POLICY, LIMITS)
        with suppress(DatabaseError):  # nobody notices a connection that was lost before the first question
            await one.look()
            await one.step()
            await one.step()
        assert proxy.fired == [fault]
        wrong += [f"{fault}: {half}" for half in half_done(await story.state())]
        await story.finish()
        wrong += [f"{fault}: {difference}" for difference in (await story.state()).differences(expected)]
    assert not wrong


def half_done(state: State) -> list[str]:
    """Sagas that are dead without a dead letter or the other way round, and active jobs of sagas that do not know."""
    dead = {id for id, status, *_ in state.sagas if status == "DeadLettered"}
    under_way = {id for id, status, *_ in state.sagas if status == "InProgress"}
    active = {saga_id for saga_id, _, status, *_ in state.jobs if status == "Pending"}
    unseen = {saga_id for saga_id, _, status, _, is_unapplied, *_ in state.jobs if status != "Pending" and is_unapplied}
    problems = []
    if dead != {saga_id for saga_id, *_ in state.dead_letters}:
        problems.append("a saga is dead without its dead letter, or the other way round")
    if not active <= under_way or not under_way <= active | unseen:
        problems.append("a saga is under way without a job, or the other way round")
    return problems


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_orchestrator_whose_connection_is_lost_again_and_again_finishes_by_itself(
    story: Story, attacked: Engine, proxy: FaultProxy, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same one goes on with what it remembers, so a memory of what was undone would show."""
    monkeypatch.setattr(engine_module, "_FIRST_PAUSE", 0.001)
    expected, seen = await undisturbed(story, attacked, proxy)
    await story.begin()
    proxy.clear()
    proxy.arm(*(Fault(name, CUT, when) for name in dict.fromkeys(seen)))
    one = Orchestrator(attacked, POLICY, LIMITS)
    for _ in dict.fromkeys(seen):
        try:
            await one.look()
            if not (await one.step()).did_work:
                break
        except DatabaseError:
            continue
    await story.finish(one)
    assert (await story.state()).differences(expected) == []
    assert {fault.statement for fault in proxy.fired} >= {f"orchestrator.{name}" for name in WRITING}


async def test_news_are_not_forgotten_when_the_step_that_has_seen_them_dies(
    story: Story, attacked: Engine, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same orchestrator starts them in a later step, without looking from the beginning."""
    await story.begin()
    one = Orchestrator(attacked, POLICY, LIMITS)
    monkeypatch.setattr(engine_module, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(hints_module, "SECONDS_BETWEEN_SWEEPS", 3600.0)
    monkeypatch.setattr(hints_module, "SLACK_OF_NEWS", datetime.timedelta(0))
    await story.finish(one)
    wrong = []
    for name in ("orchestrator.news", "orchestrator.lock_due", "orchestrator.insert_jobs", COMMIT):
        await story.begin()
        proxy.clear()
        proxy.arm(*(Fault(name, CUT, "before", nth) for nth in range(1, 5)))
        for _ in range(8):
            with suppress(DatabaseError):
                await one.step()
        assert len(proxy.fired) == 4
        if (await story.state()).sagas[0][1] != "InProgress":
            wrong.append(name)
    assert not wrong


async def test_a_process_that_is_killed_at_a_statement_that_writes_changes_nothing_in_the_end(
    engine: Database, story: Story, attacked: Engine, proxy: FaultProxy, start: Callable[[Process], Process]
) -> None:
    """The real process and SIGKILL."""
    expected, _ = await undisturbed(story, attacked, proxy)
    environment = engine.environment() | {
        "TIDINGS_DATABASE_URL_SAGA_ORCHESTRATOR": proxy.url(engine.url("saga_orchestrator")),
        "TIDINGS_MAX_RETRY_LIMIT": "2",
        "TIDINGS_BASE_DELAY_SECONDS": "3600",
        "TIDINGS_WINDOW_START": "2000",
    }
    wrong = []
    for name in ("bury_sagas", "write_dead_letters", "insert_jobs"):
        await story.begin()
        proxy.clear()
        proxy.arm(fault := Fault(f"orchestrator.{name}", KILL(), "after"))
        process = start(tidings("run", "orchestrator", **environment))
        await proxy.until_fired(30)
        assert process.wait() == -signal.SIGKILL, process.output
        wrong += [f"{fault}: {half}" for half in half_done(await story.state())]
        await story.finish()
        wrong += [f"{fault}: {difference}" for difference in (await story.state()).differences(expected)]
    assert not wrong


async def test_a_dead_letter_in_a_second_transaction_would_be_found(
    story: Story, attacked: Engine, proxy: FaultProxy, mortal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planted bug: the saga is buried, and its dead letter written after the commit, by one who may be dead then."""
    buried: list[int] = []
    take_in = Orchestrator._take_in

    async def bury_alone(operations: OrchestratorOperations, ended: dict[int, Buried]) -> None:
        if ended:
            buried.extend(ended)
            await operations._run("bury_sagas", ids=[*ended], error_codes=[one.error_code for one in ended.values()])

    async def take_in_and_write_later(one: Orchestrator) -> object:
        applied = await take_in(one)
        await OrchestratorOperations.step(one._engine, lambda it: it._run("write_dead_letters", ids=buried))
        return applied

    monkeypatch.setattr(OrchestratorOperations, "bury_sagas", bury_alone)
    monkeypatch.setattr(Orchestrator, "_take_in", take_in_and_write_later)
    await story.begin()
    proxy.arm(Fault(COMMIT, CUT, "after"))
    with pytest.raises(DatabaseError):
        await Orchestrator(attacked, POLICY, LIMITS).step()
    assert half_done(await story.state()) == ["a saga is dead without its dead letter, or the other way round"]
