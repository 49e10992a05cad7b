"""Work that a request began and that goes on after its answer.

What it did is in the database; where it ends early, somebody has to resume it or to ask for it anew.
"""

import asyncio
import traceback
from collections.abc import Coroutine
from typing import Any

from tidings.errors import TidingsError
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import WorkStopped


class Background:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(_announced(name, work), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Breaks off what is still at work; each of its batches is done or undone."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)


async def _announced(name: str, work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except TidingsError as error:
        tell(WorkStopped(name, error.what, ""))
    except Exception as error:
        tell(WorkStopped(name, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error))))
