"""One small pool of connections for each role that the API speaks as, opened when it is first needed."""

import asyncio
from contextlib import AsyncExitStack

from tidings.db.engine import Engine
from tidings.wiring import Installation

# What is not in here gets one: people act seldom.
_SIZES = {"event_ingest_writer": 3, "observer": 2}
# Whoever waits for an answer is told soon that there is no database.
_PATIENCE = 2.0


class Pools:
    def __init__(self, found: Installation) -> None:
        self._found = found
        self._engines: dict[str, Engine] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._open = AsyncExitStack()

    async def engine(self, role: str) -> Engine:
        if role not in self._engines:
            async with self._opening.setdefault(role, asyncio.Lock()):
                if role not in self._engines:
                    way = self._found.engine(role, size=_SIZES.get(role, 1), patience=_PATIENCE)
                    self._engines[role] = await self._open.enter_async_context(way)
        return self._engines[role]

    async def close(self) -> None:
        self._engines.clear()
        await self._open.aclose()
