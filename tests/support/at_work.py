"""Workers in the loop of a test: they work for the length of a block, and end as if their process were told to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from tidings.runtime.loop import keep_going


class Steps(Protocol):
    async def step(self) -> bool: ...

    async def close(self) -> None: ...


@asynccontextmanager
async def at_work(process: str, *workers: Steps) -> AsyncIterator[None]:
    stopping = asyncio.Event()
    going = [asyncio.create_task(keep_going(process, one.step, stopping)) for one in workers]
    try:
        yield
    finally:
        stopping.set()
        await asyncio.gather(*going)
        for one in workers:
            await one.close()
