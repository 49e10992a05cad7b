"""Runs one step after the other until it is told to stop; pauses when there is nothing to do or something is wrong."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from tidings.errors import TidingsError
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed

IDLE_PAUSE = 0.05
LONGEST_PAUSE = 5.0


async def keep_going(role: str, step: Callable[[], Awaitable[bool]], stopping: asyncio.Event) -> None:
    """`step` says whether there was something to do. A step that was begun is finished before the end."""
    failures = 0
    while not stopping.is_set():
        try:
            busy = await step()
            failures = 0
        except TidingsError as error:
            busy, failures = False, failures + 1
            pause = min(IDLE_PAUSE * 2**failures, LONGEST_PAUSE) * random.uniform(0.5, 1)
            tell(StepFailed(role, error.what, round(pause, 2)))
            await _pause(stopping, pause)
            continue
        if not busy:
            await _pause(stopping, IDLE_PAUSE)


async def _pause(stopping: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(stopping.wait(), seconds)
    except TimeoutError:
        return
