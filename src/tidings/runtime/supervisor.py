"""Keeps several activities alive in one process: one that crashed is begun again after a pause, until all must stop."""

import asyncio
import random
import signal
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.errors import TidingsError
from tidings.runtime.loop import pause
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import ActivityCrashed, StopOverdue

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 30.0
# After so long without a crash the next one is a first one.
SECONDS_OF_HEALTH = 60.0


@dataclass(frozen=True)
class Activity:
    """`run` goes on until the event is set, and opens and closes what it needs itself."""

    name: str
    run: Callable[[asyncio.Event], Awaitable[None]]


async def supervise(activities: Sequence[Activity], stopping: asyncio.Event, deadline: float) -> None:
    """When all must stop they have `deadline` seconds; what has not ended by then is broken off."""
    running = {asyncio.create_task(_keep_alive(one, stopping), name=one.name) for one in activities}
    try:
        await stopping.wait()
        _, late = await asyncio.wait(running, timeout=deadline)
        for task in late:
            tell(StopOverdue(task.get_name(), deadline))
    finally:
        for task in running:
            task.cancel()
        await asyncio.wait(running)


async def unless_stopped(work: Coroutine[Any, Any, None], stopping: asyncio.Event) -> None:
    """Does the work, or breaks it off when all must stop before it is done."""
    doing, told = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({doing, told}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            doing.result()
    finally:
        doing.cancel()
        told.cancel()
        await asyncio.wait({doing, told})


async def _keep_alive(activity: Activity, stopping: asyncio.Event) -> None:
    crashes = 0
    while not stopping.is_set():
        began = time.monotonic()
        try:
            await activity.run(stopping)
        except Exception as error:
            crashes = 1 if time.monotonic() - began > SECONDS_OF_HEALTH else crashes + 1
            seconds = min(FIRST_PAUSE * 2 ** min(crashes, 10), LONGEST_PAUSE) * random.uniform(0.5, 1)
            # What we have words for needs no trace.
            where = "" if isinstance(error, TidingsError) else "".join(traceback.format_exception(error))
            tell(ActivityCrashed(activity.name, f"{type(error).__name__}: {error}", round(seconds, 2), where))
            await pause(stopping, seconds)


def told_to_stop() -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C. A second one ends the process at once, as if nobody had listened."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stop() -> None:
        stopping.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return stopping
