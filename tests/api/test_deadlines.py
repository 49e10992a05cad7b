"""One timer for all: whoever is inside for too long is stopped, and nobody else."""

import asyncio

import pytest

from tests.support.waiting import eventually, pause
from tidings.api.deadlines import Deadlines

SECONDS = 0.2


async def for_ever(deadlines: Deadlines) -> None:
    with deadlines:
        await asyncio.Event().wait()


async def at_once(deadlines: Deadlines) -> str:
    with deadlines:
        return "done"


async def test_who_takes_too_long_is_stopped_however_many_come_after_it() -> None:
    deadlines = Deadlines(SECONDS)
    for _ in range(2):  # the timer is made anew when there was nobody left to wait for
        late = [asyncio.create_task(for_ever(deadlines)) for _ in range(3)]
        await pause(SECONDS / 2)
        later = asyncio.create_task(for_ever(deadlines))
        assert await at_once(deadlines) == "done"
        for one in late:
            with pytest.raises(TimeoutError):
                await one
        assert not later.done()
        with pytest.raises(TimeoutError):
            await later


async def test_who_is_done_in_time_is_never_stopped() -> None:
    deadlines = Deadlines(SECONDS)

    async def twice() -> str:
        await at_once(deadlines)
        await pause(2 * SECONDS)
        return await at_once(deadlines)

    assert await twice() == "done"


async def test_who_is_cancelled_by_somebody_else_stays_cancelled() -> None:
    deadlines = Deadlines(SECONDS)
    one = asyncio.create_task(for_ever(deadlines))
    await pause(0)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_who_is_late_and_cancelled_by_somebody_else_too_stays_cancelled() -> None:
    deadlines = Deadlines(0.0)
    one = asyncio.create_task(for_ever(deadlines))
    await pause(0)
    deadlines._stop_the_late()
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one


async def test_what_fails_fails_as_it_would_without() -> None:
    with pytest.raises(ZeroDivisionError), Deadlines(SECONDS):
        raise ZeroDivisionError


async def test_nobody_is_remembered() -> None:
    deadlines = Deadlines(SECONDS)
    await asyncio.gather(*(at_once(deadlines) for _ in range(100)))
    with pytest.raises(TimeoutError):
        await for_ever(deadlines)
    assert not deadlines._ends
    await eventually(lambda: deadlines._timer is None, what="the timer to rest")
