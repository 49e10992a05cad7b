"""A bell ends somebody's pause early; rung any number of times before it is heard, it was rung once."""

import asyncio


class Bell:
    """For one listener, who comes by many times a second: a bare timer costs a third of `asyncio.timeout`."""

    def __init__(self) -> None:
        self._is_rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self._is_rung = True
        self._wake()

    async def heard(self, seconds: float) -> bool:
        """Whether it was rung since it was last heard, or is within so many seconds."""
        if not self._is_rung:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        was_rung, self._is_rung = self._is_rung, False
        return was_rung

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
