"""The supervisor: what crashed is begun again, what must stop does, and in time."""

import asyncio
import time

import pytest

from tests.support.waiting import eventually, pause
from tidings.errors import TidingsError
from tidings.runtime import loop as loop_module
from tidings.runtime import supervisor as supervisor_module
from tidings.runtime.loop import keep_going
from tidings.runtime.supervisor import Activity, supervise, unless_stopped
from tidings.telemetry.notices import ActivityCrashed, Notice, StepFailed, StopOverdue


@pytest.fixture
def stopping() -> asyncio.Event:
    return asyncio.Event()


async def test_a_crashed_activity_is_begun_again_after_a_pause_that_grows(
    stopping: asyncio.Event, told: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "FIRST_PAUSE", 0.01)
    begun: list[float] = []
    calm = asyncio.Event()

    async def crashing(stopping: asyncio.Event) -> None:
        begun.append(time.monotonic())
        if len(begun) == 5:
            stopping.set()
            return
        raise ZeroDivisionError("in the middle")

    async def steady(stopping: asyncio.Event) -> None:
        await stopping.wait()
        calm.set()

    await supervise([Activity("crashing", crashing), Activity("steady", steady)], stopping, 5)
    assert calm.is_set()
    crashes = [one for one in told if isinstance(one, ActivityCrashed)]
    assert [one.activity for one in crashes] == ["crashing"] * 4
    assert crashes[0].error == "ZeroDivisionError: in the middle"
    assert "test_supervisor.py" in crashes[0].traceback
    assert crashes[3].pause_seconds >= 0.08 > crashes[0].pause_seconds
    assert begun[4] - begun[3] >= 0.08


async def test_after_a_healthy_time_a_crash_is_a_first_one_again(
    stopping: asyncio.Event, told: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_module, "FIRST_PAUSE", 0.005)
    monkeypatch.setattr(supervisor_module, "SECONDS_OF_HEALTH", 0.0)
    times = 0

    async def crashing(stopping: asyncio.Event) -> None:
        nonlocal times
        times += 1
        if times == 6:
            stopping.set()
        raise ValueError

    await supervise([Activity("crashing", crashing)], stopping, 5)
    assert {one.pause_seconds for one in told if isinstance(one, ActivityCrashed)} == {0.01}


async def test_what_does_not_stop_in_time_is_broken_off(stopping: asyncio.Event, told: list[Notice]) -> None:
    tidied = asyncio.Event()

    async def deaf(stopping: asyncio.Event) -> None:
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            tidied.set()

    await asyncio.wait_for(supervise([Activity("deaf", deaf)], stopping, 0.1), 5)
    assert tidied.is_set()
    assert told == [StopOverdue("deaf", 0.1)]


async def test_a_step_that_was_begun_is_finished_before_the_end(stopping: asyncio.Event) -> None:
    finished = 0

    async def step() -> bool:
        nonlocal finished
        stopping.set()
        await pause(0.05)
        finished += 1
        return True

    await keep_going("it", step, stopping)
    assert finished == 1


async def test_a_step_that_does_not_finish_is_broken_off(
    stopping: asyncio.Event, told: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a server that is away; what it was at is undone."""
    monkeypatch.setattr(loop_module, "SECONDS_TO_FINISH", 0.1)
    undone = asyncio.Event()

    async def step() -> bool:
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            undone.set()
        return True

    await asyncio.wait_for(keep_going("it", step, stopping), 5)
    assert undone.is_set()
    assert told == [StopOverdue("it", 0.1)]


async def test_a_step_that_fails_is_tried_again_and_a_bug_is_passed_on(
    stopping: asyncio.Event, told: list[Notice]
) -> None:
    times = 0

    async def step() -> bool:
        nonlocal times
        times += 1
        if times < 3:
            raise TidingsError("The server is away.")
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        await keep_going("it", step, stopping)
    failures = [(one.role, one.error) for one in told if isinstance(one, StepFailed)]
    assert failures == [("it", "The server is away.")] * 2


async def test_an_idle_loop_ends_at_once_when_it_is_told_to(
    stopping: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_module, "IDLE_PAUSE", 60)
    steps = 0

    async def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    going = asyncio.create_task(keep_going("it", step, stopping))
    await eventually(lambda: steps, what="the first step")
    stopping.set()
    await asyncio.wait_for(going, 5)
    assert steps == 1


@pytest.mark.parametrize("is_told", [True, False])
async def test_work_before_the_start_is_broken_off_when_all_must_stop(stopping: asyncio.Event, is_told: bool) -> None:
    broken_off = asyncio.Event()

    async def work() -> None:
        if not is_told:
            raise TidingsError("A person must mend this.")
        stopping.set()
        try:
            await asyncio.Event().wait()
        finally:
            broken_off.set()

    if is_told:
        await asyncio.wait_for(unless_stopped(work(), stopping), 5)
        assert broken_off.is_set()
    else:
        with pytest.raises(TidingsError):
            await unless_stopped(work(), stopping)


async def test_nothing_is_begun_when_it_was_told_to_stop_before(stopping: asyncio.Event) -> None:
    begun: list[str] = []

    async def run(stopping: asyncio.Event) -> None:
        begun.append("it")

    stopping.set()
    await supervise([Activity("it", run)], stopping, 5)
    assert begun == []
