"""Who publishes: somebody by the HTTP API, which wakes the router, or a transaction that tells nobody."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import asyncmy
import asyncpg

import tidings
from bench.payload import ADMIN_KEY
from bench.standing import API_PORT, LOOPBACK
from tests.support.database import Database
from tidings.db.address import read_address

WRITER = "event_ingest_writer"
PAYLOAD = '{"order": 4711, "amount": "12.50"}'

Publish = Callable[[], Awaitable[float]]
"""Returns the moment at which it was committed."""


@asynccontextmanager
async def by_api(database: Database) -> AsyncIterator[Publish]:
    """On a kept connection. The answer comes right after the commit; whoever was woken by it works at the same time."""
    async with aiohttp.ClientSession(
        f"http://{LOOPBACK}:{API_PORT}", headers={"Authorization": f"Bearer {ADMIN_KEY}"}
    ) as session:

        async def publish() -> float:
            event = {"event_type": "order.paid", "payload": json.loads(PAYLOAD)}
            async with session.post("/v1/events", json=event) as response:
                assert response.status == 202, await response.text()
                return time.perf_counter()

        yield publish


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
