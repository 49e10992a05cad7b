"""Others who write events all the while, in transactions that commit out of the order of their ids."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.database import Database

WRITERS = 2


@asynccontextmanager
async def busy_writers(database: Database, event_type: str) -> AsyncIterator[None]:
    writing = True

    async def write() -> None:
        writer = await database.open("event_ingest_writer")
        while writing:
            async with writer.transaction() as transaction:
                for _ in range(3):
                    await transaction.command(f"INSERT INTO events (event_type, payload) VALUES ('{event_type}', '2')")
                    await asyncio.sleep(0)

    writers = [asyncio.create_task(write()) for _ in range(WRITERS)]
    try:
        yield
    finally:
        writing = False
        await asyncio.gather(*writers)
