"""A bell ends somebody's pause early; rung any number of times before it is heard, it was rung once."""

import asyncio
from contextlib import suppress


class Bell:
    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def heard(self, seconds: float) -> bool:
        """Whether it was rung since it was last heard, or is within so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        was_rung = self._rung.is_set()
        self._rung.clear()
        return was_rung
