"""What holds a statement up after its ids were drawn: a lock that somebody else holds, or a sleep in the server."""

import asyncio
import itertools
from contextlib import suppress
from random import Random

from tests.scenarios.routing.words import Words
from tests.support.sessions import Session
from tests.support.waiting import eventually

# A statement may be held up by somebody else before it meets its own obstacle; then nobody waits for that.
MET_WITHIN = 0.1


class Barriers:
    """Obstacles that stay until they are lifted, for histories in which a scheduler decides who moves."""

    def __init__(self, holder: Session, watcher: Session, words: Words) -> None:
        self.words = words
        self._holder, self._watcher = holder, watcher
        self._keys = itertools.count(1)
        self._turn = asyncio.Lock()

    async def put_up(self) -> "Barrier":
        barrier = Barrier(self, next(self._keys))
        await self.hold(self.words.lock(barrier.key))
        return barrier

    async def hold(self, text: str) -> None:
        """Two who come at once take turns."""
        async with self._turn:
            await self._holder.run(text)

    async def sees(self, question: str) -> bool:
        async with self._turn:
            return bool(await self._watcher.run(question))


class Barrier:
    def __init__(self, barriers: Barriers, key: int) -> None:
        self.key = key
        self.expression = barriers.words.locked(key)
        self._barriers = barriers

    async def met(self, backend: int) -> None:
        question = self._barriers.words.is_waiting(self.key, backend)
        with suppress(AssertionError):
            await eventually(lambda: self._barriers.sees(question), timeout=MET_WITHIN, what="a statement to hang")

    async def lift(self) -> None:
        await self._barriers.hold(self._barriers.words.unlock(self.key))


class Sleep:
    """An obstacle that goes away by itself, for free runs."""

    def __init__(self, words: Words, seconds: float) -> None:
        self.expression = words.slept(seconds)

    async def met(self, backend: int) -> None:
        pass

    async def lift(self) -> None:
        pass


class Sleeps:
    def __init__(self, words: Words, chance: Random, longest: float) -> None:
        self._words, self._chance, self._longest = words, chance, longest

    async def put_up(self) -> Sleep:
        return Sleep(self._words, round(self._chance.uniform(0.01, self._longest), 3))
