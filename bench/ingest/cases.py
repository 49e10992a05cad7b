"""Who publishes, and how: each case is one turn of one client, run by many clients at once."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncmy
import asyncpg

import tidings
from bench.payload import PAYLOAD
from tests.support.database import Database
from tidings.db.address import read_address
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
    connections = [await _CONNECT[database.kind](database.admin_url) for _ in range(clients)]

    def turn_of(connection: Any) -> Turn:
        execute = _EXECUTE[database.kind](connection)

        async def turn() -> None:
            key = uuid.uuid4().hex
            await execute("BEGIN")
            await execute(f"INSERT INTO app.orders VALUES ('{key}')")
            await tidings.publish(connection, "order.paid", PAYLOAD, external_id=key)
            await execute("COMMIT")

        return turn

    yield [turn_of(connection) for connection in connections]
    for connection in connections:
        connection.terminate() if database.family == "postgresql" else connection.close()


async def _connect_mariadb(url: str) -> Any:
    address = read_address(url)
    return await asyncmy.connect(
        host=address.host, port=address.port, user=address.user, password=address.password, autocommit=True
    )


def _execute_mariadb(connection: Any) -> Callable[[str], Awaitable[object]]:
    async def execute(text: str) -> None:
        async with connection.cursor() as cursor:
            await cursor.execute(text)

    return execute


_CONNECT: dict[str, Callable[[str], Awaitable[Any]]] = {"postgresql": asyncpg.connect, "mariadb": _connect_mariadb}
_EXECUTE: dict[str, Callable[[Any], Callable[[str], Awaitable[object]]]] = {
    "postgresql": lambda connection: connection.execute,
    "mariadb": _execute_mariadb,
}

CASES = (
    Case("single, 64 clients", 64, 1, lambda database, clients: through_the_service(database, clients, 1)),
    Case(f"batches of {BATCH}", 8, BATCH, lambda database, clients: through_the_service(database, clients, BATCH)),
    Case("in 16 own transactions", 16, 1, in_own_transactions),
)
