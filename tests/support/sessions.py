"""One database session of either engine, straight on its driver, for tests that go around the product."""

from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import asyncmy
import asyncpg


class Session(Protocol):
    """Runs one statement at a time, each in its own transaction unless the statements say otherwise."""

    connection: Any  # the driver's own

    async def run(self, sql: str) -> list[tuple[Any, ...]]: ...

    async def close(self) -> None: ...


async def connect(url: str) -> Session:
    """Open a session on the database that the URL names."""
    parts = urlsplit(url)
    if parts.scheme == "postgresql":
        return PostgresSession(await asyncpg.connect(url))
    connection = await asyncmy.connect(
        host=parts.hostname,
        port=parts.port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        db=parts.path.strip("/") or None,
        autocommit=True,
    )
    return MariaDBSession(connection)


class PostgresSession:
    """asyncpg, with every statement as a prepared one, as the product sends them."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self.connection.fetch(sql)]

    async def close(self) -> None:
        # Politeness may wait for an answer that a fault has swallowed.
        self.connection.terminate()


class MariaDBSession:
    """asyncmy, with every statement as text."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def run(self, sql: str) -> list[tuple[Any, ...]]:
        async with self.connection.cursor() as cursor:
            await cursor.execute(sql)
            return list(await cursor.fetchall()) if cursor.description else []

    async def close(self) -> None:
        self.connection.close()
