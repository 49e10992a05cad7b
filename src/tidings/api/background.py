"""Work that a request began and that goes on after its answer. All of it is kept in the database and can be resumed."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from tidings.errors import TidingsError
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed


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
        tell(StepFailed(name, error.what, 0.0))
