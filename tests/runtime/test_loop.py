"""The loop: alert after work, seldom when idle, woken by a bell, and never more than a pause late without one."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest

from tests.support.waiting import eventually, pause
from tidings.runtime import loop as loop_module
from tidings.runtime.bell import Bell
from tidings.runtime.loop import Pace, Work, keep_going

LONG = Pace(between_looks=60)


class Role:
    """Something to do now and then; notes when it was asked."""

    def __init__(self) -> None:
        self.todo = 0
        self.steps: list[float] = []
        self.looks: list[float] = []
        self.bell = Bell()

    async def step(self) -> bool:
        self.steps.append(time.monotonic())
        if not self.todo:
            return False
        self.todo -= 1
        return True

    async def look(self) -> bool:
        self.looks.append(time.monotonic())
        return bool(self.todo)

    @asynccontextmanager
    async def going(self, pace: Pace = LONG) -> AsyncIterator[None]:
        stopping = asyncio.Event()
        going = asyncio.create_task(keep_going("it", Work(self.step, self.look, pace), stopping, self.bell))
        try:
            yield
        finally:
            stopping.set()
            await asyncio.wait_for(going, 5)


@pytest.fixture
def role() -> Role:
    return Role()


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is alert after work."""
    monkeypatch.setattr(loop_module, "SECONDS_ALERT", 0.0)


@pytest.mark.usefixtures("calm")
async def test_a_bell_ends_a_long_pause_at_once(role: Role) -> None:
    async with role.going():
        await eventually(lambda: role.steps, what="the first step")
        await pause(0.05)
        role.todo = 1
        rung = time.monotonic()
        role.bell.ring()
        await eventually(lambda: not role.todo, what="the work")
        assert time.monotonic() - rung < 5
    assert not role.looks  # who was woken need not ask


@pytest.mark.usefixtures("calm")
async def test_a_bell_that_was_not_heard_costs_a_pause_and_nothing_else(role: Role) -> None:
    async with role.going(Pace(0.1)):
        await eventually(lambda: role.looks, what="an idle look")
        role.todo = 3
        await eventually(lambda: not role.todo, what="the work", timeout=5)


@pytest.mark.usefixtures("calm")
async def test_a_bell_rung_during_a_step_is_not_forgotten(role: Role) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def slow() -> bool:
        role.steps.append(time.monotonic())
        begun.set()
        await may_end.wait()
        return False

    stopping = asyncio.Event()
    going = asyncio.create_task(keep_going("it", Work(slow, role.look, LONG), stopping, role.bell))
    await begun.wait()
    role.bell.ring()
    may_end.set()
    await eventually(lambda: len(role.steps) == 2, what="a step after it")
    stopping.set()
    await asyncio.wait_for(going, 5)


@pytest.mark.usefixtures("calm")
async def test_however_often_a_bell_is_rung_for_nothing_it_is_no_busy_loop(role: Role) -> None:
    async with role.going():
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            role.bell.ring()
            await pause(0)
    assert 2 <= len(role.steps) <= 0.5 / loop_module.SECONDS_GATHERING + 3


async def test_after_work_it_looks_often_and_then_seldom(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SECONDS_ALERT", 1.2)
    role.todo = 1
    async with role.going(Pace(0.5)):
        await eventually(lambda: len(role.looks) >= 4, what="some idle looks")
    alert = [at for at in role.steps if at < role.looks[0]]
    assert len(alert) > 5
    assert role.steps == alert  # an idle look finds nothing, and no step is made
    assert min(later - earlier for earlier, later in pairwise(role.looks[1:])) > 0.25


async def test_an_idle_role_that_finds_something_is_alert_again(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "SECONDS_ALERT", 1.0)
    async with role.going(Pace(0.2)):
        await eventually(lambda: role.looks, what="an idle look")
        before = len(role.steps)
        role.todo = 1
        await eventually(lambda: len(role.steps) > before + 3, what="steps close to each other")
    assert min(later - earlier for earlier, later in pairwise(role.steps[before:])) < 0.15


@pytest.mark.usefixtures("calm")
async def test_a_look_that_takes_long_is_made_seldom(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that keeps dead rows for somebody must not be busy with looking for none."""

    async def slow() -> bool:
        await pause(0.12)
        return await role.look()

    monkeypatch.setattr(loop_module, "_PART_FOR_LOOKS", 0.2)
    stopping = asyncio.Event()
    going = asyncio.create_task(keep_going("it", Work(role.step, slow, Pace(0.02)), stopping, role.bell))
    await eventually(lambda: len(role.looks) >= 3, what="three looks")
    stopping.set()
    await asyncio.wait_for(going, 5)
    assert role.looks[2] - role.looks[1] > 0.6


@pytest.mark.usefixtures("calm")
async def test_a_long_pause_ends_when_all_must_stop(role: Role) -> None:
    async with role.going():
        await eventually(lambda: role.steps, what="the first step")
        began = time.monotonic()
    assert time.monotonic() - began < 2


def test_all_look_at_the_same_moments_of_the_clock() -> None:
    """So what one role has made is found a `phase` later, wherever the other runs."""

    def beside(moment: float) -> float:
        """How far it is from the nearest half of a second."""
        return abs(moment - round(2 * moment) / 2)

    for now in (100.0, 100.1, 100.26, 100.45, 17.3333):
        assert beside(now + Pace(0.5).until_next(now)) < 1e-6
        assert beside(now + Pace(0.5, phase=0.06).until_next(now) - 0.06) < 1e-6


def test_a_timer_that_fires_early_does_not_make_two_looks_of_one() -> None:
    assert Pace(0.5).until_next(99.999) == pytest.approx(0.501)
    assert Pace(0.5).until_next(100.001) == pytest.approx(0.499)
