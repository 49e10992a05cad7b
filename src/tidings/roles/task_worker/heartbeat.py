"""Says that tasks are still being worked on: from a thread of its own, so that a handler that blocks the event loop is
not taken for a dead one."""

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from tidings.db.engine import Engine
from tidings.errors import TidingsError
from tidings.roles.task_worker.operations import Fence, TaskWorkerOperations
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed

BATCH = 500
# A heart that could not beat tries again so soon.
SECONDS_AFTER_FAILURE = 1.0


class Heartbeat:
    """`held` is asked in that thread; it says which tasks are ours and still have time."""

    def __init__(self, engine: Engine, held: Callable[[], Sequence[Fence]], seconds: float) -> None:
        self._engine = engine
        self._held = held
        self._seconds = seconds
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="heartbeat", daemon=True)
            self._thread.start()

    async def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 5.0)

    def _live(self) -> None:
        twin: Engine | None = None
        with asyncio.Runner() as runner:
            pause = self._seconds
            while not self._stopping.wait(pause * random.uniform(0.9, 1)):
                try:
                    twin = twin or runner.run(self._engine.twin())
                    runner.run(self._beat(twin))
                    pause = self._seconds
                except TidingsError as error:
                    pause = min(SECONDS_AFTER_FAILURE, self._seconds)
                    tell(StepFailed("heartbeat", error.what, pause))
            if twin is not None:
                with suppress(TidingsError):
                    runner.run(twin.close())

    async def _beat(self, twin: Engine) -> None:
        held = self._held()
        for first in range(0, len(held), BATCH):
            await TaskWorkerOperations.step(
                twin, partial(TaskWorkerOperations.beat, fences=held[first : first + BATCH])
            )
