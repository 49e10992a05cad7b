"""Runs one step after the other until it is told to stop; pauses when there is nothing to do or something is wrong."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from tidings.errors import TidingsError
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed, StopOverdue

IDLE_PAUSE = 0.05
LONGEST_PAUSE = 5.0
# A step is a short transaction; one that takes longer waits for a server that is away.
SECONDS_TO_FINISH = 5.0


async def keep_going(role: str, step: Callable[[], Awaitable[bool]], stopping: asyncio.Event) -> None:
    """`step` says whether there was something to do.

    A step that was begun is finished before the end; one that does not finish is broken off, which undoes it.
    """
    going = asyncio.create_task(_go_on(role, step, stopping), name=role)
    told = asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({going, told}, return_when=asyncio.FIRST_COMPLETED)
        _, late = await asyncio.wait({going}, timeout=SECONDS_TO_FINISH)
        if late:
            tell(StopOverdue(role, SECONDS_TO_FINISH))
        else:
            going.result()
    finally:
        await _cancelled(told)
        await _cancelled(going)


async def _go_on(role: str, step: Callable[[], Awaitable[bool]], stopping: asyncio.Event) -> None:
    failures = 0
    while not stopping.is_set():
        try:
            busy = await step()
            failures = 0
        except TidingsError as error:
            failures += 1
            seconds = min(IDLE_PAUSE * 2 ** min(failures, 10), LONGEST_PAUSE) * random.uniform(0.5, 1)
            tell(StepFailed(role, error.what, round(seconds, 2)))
            await pause(stopping, seconds)
            continue
        if not busy:
            await pause(stopping, IDLE_PAUSE)


async def pause(stopping: asyncio.Event, seconds: float) -> None:
    """So long, or until all must stop."""
    with suppress(TimeoutError):
        await asyncio.wait_for(stopping.wait(), seconds)


async def _cancelled(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.wait({task})
