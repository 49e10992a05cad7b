"""Who publishes: the ingest service of another process, which wakes the router, or a transaction that tells nobody."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncmy
import asyncpg

import tidings
from tests.support.database import Database
from tidings.db.address import read_address
from tidings.model.event import NewEvent
from tidings.roles.ingest.service import Ingest
from tidings.runtime.wakeups import Wakeups

WRITER = "event_ingest_writer"
PAYLOAD = '{"order": 4711, "amount": "12.50"}'

Publish = Callable[[], Awaitable[float]]
"""Returns the moment at which it was committed."""


@asynccontextmanager
async def by_service(database: Database) -> AsyncIterator[Publish]:
    wakeups, stopping = Wakeups(()), asyncio.Event()
    waking: asyncio.Task[None] | None = None
    engine, own = await database.open(WRITER), await database.open(WRITER, size=1)
    if own.can_notify:
        waking = asyncio.create_task(wakeups.run(own, database.names.schema, stopping))
    ingest = Ingest(engine, on_published=lambda: wakeups.ring("router"))

    async def publish() -> float:
        await ingest.publish([NewEvent("order.paid", PAYLOAD, None, "default", "", uuid.uuid4().hex)])
        return time.perf_counter()

    yield publish
    stopping.set()
    await ingest.close()
    if waking:
        await waking


@asynccontextmanager
async def by_transaction(database: Database) -> AsyncIterator[Publish]:
    connection, execute = await _connect(database)

    async def publish() -> float:
        await execute("BEGIN")
        await tidings.publish(connection, "order.paid", PAYLOAD, schema=database.names.schema)
        await execute("COMMIT")
        return time.perf_counter()

    yield publish
    connection.terminate() if database.family == "postgresql" else connection.close()


async def _connect(database: Database) -> tuple[Any, Callable[[str], Awaitable[object]]]:
    if database.family == "postgresql":
        connection = await asyncpg.connect(database.url(WRITER))
        return connection, connection.execute
    address = read_address(database.url(WRITER))
    connection = await asyncmy.connect(
        host=address.host, port=address.port, user=address.user, password=address.password, autocommit=True
    )

    async def execute(text: str) -> object:
        async with connection.cursor() as cursor:
            return await cursor.execute(text)

    return connection, execute
