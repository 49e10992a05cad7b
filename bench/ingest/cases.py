"""Who publishes, and how: each case is one turn of one client, run by many clients at once."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import tidings
from bench.own_connection import Execute, own_connection
from bench.payload import PAYLOAD
from tests.support.database import Database
from tidings.model.event import NewEvent
from tidings.roles.ingest.service import Ingest

WRITER = "event_ingest_writer"
BATCH = 100

Turn = Callable[[], Awaitable[object]]
Clients = Callable[[Database, int], Any]


@dataclass(frozen=True)
class Case:
    name: str
    clients: int
    events_a_turn: int
    open: Clients


def new_event() -> NewEvent:
    return NewEvent("order.paid", PAYLOAD, uuid.uuid4().hex, "default", "", uuid.uuid4().hex)


@asynccontextmanager
async def through_the_service(database: Database, clients: int, events: int) -> AsyncIterator[list[Turn]]:
    engine = await database.open(WRITER)
    ingest = Ingest(engine)

    async def turn() -> None:
        await ingest.publish([new_event() for _ in range(events)])

    yield [turn] * clients
    await ingest.close()


@asynccontextmanager
async def in_own_transactions(database: Database, clients: int) -> AsyncIterator[list[Turn]]:
    """Each client has a connection, and writes a row of its own business with each event."""
    await database.sql("CREATE SCHEMA IF NOT EXISTS app", "admin")
    await database.sql("CREATE TABLE IF NOT EXISTS app.orders (id char(32) PRIMARY KEY)", "admin")

    def turn_of(connection: Any, execute: Execute) -> Turn:
        async def turn() -> None:
            key = uuid.uuid4().hex
            await execute("BEGIN")
            await execute(f"INSERT INTO app.orders VALUES ('{key}')")
            await tidings.publish(connection, "order.paid", PAYLOAD, external_id=key)
            await execute("COMMIT")

        return turn

    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(own_connection(database.admin_url)) for _ in range(clients)]
        yield [turn_of(*one) for one in opened]


CASES = (
    Case("single, 64 clients", 64, 1, lambda database, clients: through_the_service(database, clients, 1)),
    Case(f"batches of {BATCH}", 8, BATCH, lambda database, clients: through_the_service(database, clients, BATCH)),
    Case("in 16 own transactions", 16, 1, in_own_transactions),
)
