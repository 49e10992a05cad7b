"""Who publishes: somebody by the HTTP API, which wakes the router, or a transaction that tells nobody."""

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp

import tidings
from bench.own_connection import own_connection
from bench.payload import ADMIN_KEY
from bench.ports import LOOPBACK
from bench.standing import API_PORT
from tests.support.database import Database

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
    async with own_connection(database.url(WRITER)) as (connection, execute):

        async def publish() -> float:
            await execute("BEGIN")
            await tidings.publish(connection, "order.paid", PAYLOAD, schema=database.names.schema)
            await execute("COMMIT")
            return time.perf_counter()

        yield publish
