"""What a worker has to say, said in batches, again and again until it is heard.

While one batch is on its way the next one gathers; a database that is away loses nothing that was done.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from tidings.errors import TidingsError
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import ReportDelayed

BATCH = 500
# After a batch of so many, and not all at once, the next one gathers for so long or until it is full: twice as many
# cost little more.
MANY, SECONDS_GATHERING = 32, 0.025
LONGEST_PAUSE = 2.0

Done = TypeVar("Done")
Undone = TypeVar("Undone")


class Outbox(Generic[Done, Undone]):
    """`say` stores some of what was done, and gives back some of what was not begun."""

    def __init__(self, worker_id: str, say: Callable[[Sequence[Done], Sequence[Undone]], Awaitable[None]]) -> None:
        self._worker_id = worker_id
        self._say = say
        self._done: list[Done] = []
        self._undone: list[Undone] = []
        self._news, self._full = asyncio.Event(), asyncio.Event()
        self._closing = False
        self._work: asyncio.Task[None] | None = None

    @property
    def unheard(self) -> int:
        return len(self._done) + len(self._undone)

    def start(self) -> None:
        """Raises what ended it, if something did: what can't say what it did must not do more."""
        if self._work is None:
            self._work = asyncio.create_task(self._go_on(), name=f"outbox of {self._worker_id}")
        elif self._work.done():
            self._work.result()

    def was_done(self, one: Done) -> None:
        self._done.append(one)
        self._news.set()
        if len(self._done) == BATCH:
            self._full.set()

    def was_not_begun(self, one: Undone) -> None:
        self._undone.append(one)
        self._news.set()

    async def close(self, deadline: float) -> None:
        """Waits until everything is heard, for `deadline` seconds at most."""
        self._closing = True
        self._news.set()
        self._full.set()
        if self._work is not None:
            await asyncio.wait([self._work], timeout=deadline)
            self._work.cancel()

    async def _go_on(self) -> None:
        failures = 0
        while not (self._closing and not self.unheard):
            await self._news.wait()
            self._news.clear()
            try:
                await self._flush()
                failures = 0
            except TidingsError as error:
                failures += 1
                tell(ReportDelayed(self._worker_id, self.unheard, error.what))
                await asyncio.sleep(min(0.05 * 2 ** min(failures, 10), LONGEST_PAUSE) * random.uniform(0.5, 1))
                self._news.set()

    async def _flush(self) -> None:
        while self.unheard:
            done, undone = self._done[:BATCH], self._undone[:BATCH]
            began = time.monotonic()
            await self._say(done, undone)
            del self._done[: len(done)], self._undone[: len(undone)]
            if MANY <= len(done) < BATCH:
                await self._gather(began + SECONDS_GATHERING)

    async def _gather(self, until: float) -> None:
        if len(self._done) < BATCH and not self._closing:
            self._full.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), max(0.0, until - time.monotonic()))
