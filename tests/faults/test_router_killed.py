"""A router that dies anywhere in its passes has done all of their work in the end, and done it once."""

import signal
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Literal

import pytest

from tests.faults.routing_story import BATCH, State, Story
from tests.support.database import Database
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy
from tests.support.processes import Process, tidings
from tidings.db import engine as engine_module
from tidings.db.engine import Engine
from tidings.db.statements import load_statements
from tidings.errors import DatabaseError
from tidings.roles.router.passes import Outcome
from tidings.roles.router.router import Router

pytestmark = pytest.mark.slow

ROLE = "event_router"
COMMIT = f"{ROLE}.commit"
# What a person's command asks, what only the very first pass of an installation does, the look between passes, and what
# is asked after a loss (tests/roles/router/test_identity.py).
NOT_OF_A_PASS = {
    "glance",
    *("wait_for_cursor", "wait_for_cursors", "make_cursor", "dead_letter", "resolve", "audit"),
    *("clock", "past_events", "decided_among", "correlation_of", "remember_lost"),
}
When = Literal["before", "after"]


@pytest.fixture
async def story(engine: Database) -> AsyncIterator[Story]:
    told = await Story.of(engine)
    yield told
    await told.close()


async def undisturbed(story: Story, attacked: Engine, proxy: FaultProxy) -> tuple[State, list[str]]:
    """How the story ends, and every statement that the router sent until then."""
    await story.begin()
    proxy.clear()
    await story.finish(Router(attacked, batch=BATCH))
    return await story.state(), proxy.seen


async def until_dead(router: Router) -> None:
    """Passes until one fails; a lost view of the writers alone ends no pass."""
    try:
        while (await router.step()).outcome is not Outcome.IDLE:
            pass
    except DatabaseError:
        pass
    finally:
        await router.close()


def writes(seen: Iterable[str], engine: Engine) -> list[str]:
    """Those of the statements that change something, and the end of the transaction, in the order they came in."""
    texts = load_statements("tidings.roles.router", engine.dialect)
    changing = {
        text.name
        for text in texts.values()
        if any(word in text.text for word in ("INSERT INTO", "INSERT IGNORE", "UPDATE ", "DELETE "))
    }
    return [name for name in dict.fromkeys(seen) if name in {*changing, COMMIT} and name != "router.lock_cursor"]


async def test_the_story_has_every_statement_of_a_pass_in_it(story: Story, attacked: Engine, proxy: FaultProxy) -> None:
    _, seen = await undisturbed(story, attacked, proxy)
    everything = load_statements("tidings.roles.router", attacked.dialect).keys()
    # Markers of writers are kept, and forgotten, where locks do not tell who writes.
    absent = NOT_OF_A_PASS | ({"forget_writers"} if attacked.dialect.family == "postgresql" else set())
    assert {name.removeprefix("router.") for name in seen} == everything - absent | {"event_router.begin", COMMIT}


@pytest.mark.timeout(300)
async def test_a_router_that_dies_at_any_statement_leaves_nothing_undone_and_nothing_doubled(
    story: Story, attacked: Engine, proxy: FaultProxy, mortal: None
) -> None:
    """Before each statement and after it, and for those that write also the second time they are sent."""
    expected, seen = await undisturbed(story, attacked, proxy)
    faults = [Fault(name, CUT, when) for name in dict.fromkeys(seen) for when in ("before", "after")]
    faults += [Fault(name, CUT, "after", nth=2) for name in writes(seen, attacked) if seen.count(name) > 1]
    wrong = []
    for fault in faults:
        await story.begin()
        proxy.clear()
        proxy.arm(fault)
        await until_dead(Router(attacked, batch=BATCH))
        assert proxy.fired == [fault]
        await story.finish()
        wrong += [f"{fault}: {difference}" for difference in (await story.state()).differences(expected)]
    assert not wrong


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_router_whose_connection_is_lost_again_and_again_finishes_by_itself(
    story: Story, attacked: Engine, proxy: FaultProxy, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same router goes on with what it remembers, so a memory of what was undone would show."""
    monkeypatch.setattr(engine_module, "_FIRST_PAUSE", 0.001)
    expected, seen = await undisturbed(story, attacked, proxy)
    await story.begin()
    proxy.clear()
    proxy.arm(*(Fault(name, CUT, when) for name in dict.fromkeys(seen)))
    router = Router(attacked, batch=BATCH)
    for _ in dict.fromkeys(seen):
        try:
            if (await router.step()).outcome is Outcome.IDLE:
                break
        except DatabaseError:
            continue
    await story.finish(router)
    assert {fault.statement for fault in proxy.fired} == {*seen}
    assert (await story.state()).differences(expected) == []


@pytest.mark.timeout(300)
async def test_a_process_that_is_killed_at_a_statement_that_writes_changes_nothing_in_the_end(
    engine: Database, story: Story, attacked: Engine, proxy: FaultProxy, start: Callable[[Process], Process]
) -> None:
    """The real process and SIGKILL. Its first commit ends a look at the cursor; the second one is that of a pass."""
    expected, seen = await undisturbed(story, attacked, proxy)
    faults = [Fault(COMMIT, KILL(), "before", nth=2), Fault(COMMIT, KILL(), "after", nth=2)]
    faults += [Fault(name, KILL(), "after") for name in writes(seen, attacked) if name != COMMIT]
    environment = engine.environment() | {
        "TIDINGS_DATABASE_URL_EVENT_ROUTER": proxy.url(engine.url("event_router")),
    }
    wrong = []
    for fault in faults:
        await story.begin()
        proxy.clear()
        proxy.arm(fault)
        process = start(tidings("run", "router", **environment))
        await proxy.until_fired(30)
        assert process.wait() == -signal.SIGKILL, process.output
        await story.finish()
        wrong += [f"{fault}: {difference}" for difference in (await story.state()).differences(expected)]
    assert not wrong


@pytest.mark.parametrize("when", ["before", "after"])
async def test_the_very_first_pass_can_die_anywhere_too(
    engine: Database, story: Story, attacked: Engine, proxy: FaultProxy, mortal: None, when: When
) -> None:
    await engine.sql("DELETE FROM route_worker_cursors")
    proxy.clear()
    await Router(attacked, batch=BATCH).step()
    first_pass = dict.fromkeys(proxy.seen)
    assert "router.make_cursor" in first_pass
    for name in first_pass:
        await engine.sql("DELETE FROM route_worker_cursors")
        proxy.clear()
        proxy.arm(fault := Fault(name, CUT, when))
        await until_dead(Router(attacked, batch=BATCH))
        assert proxy.fired == [fault]
        await story.finish()
        assert await engine.value("SELECT COUNT(*) FROM route_worker_cursors") == 1, name
