"""A connection of an application's own, on either driver, and how it runs a statement that yields nothing."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import asyncmy
import asyncpg

from tidings.db.address import Address, read_address

Execute = Callable[[str], Awaitable[object]]


def own_connection(url: str) -> AbstractAsyncContextManager[tuple[Any, Execute]]:
    address = read_address(url)
    return _to_postgresql(address) if address.family == "postgresql" else _to_mariadb(address)


@asynccontextmanager
async def _to_postgresql(address: Address) -> AsyncIterator[tuple[Any, Execute]]:
    connection = await asyncpg.connect(address.url)
    try:
        yield connection, connection.execute
    finally:
        await connection.close()


@asynccontextmanager
async def _to_mariadb(address: Address) -> AsyncIterator[tuple[Any, Execute]]:
    connection = await asyncmy.connect(
        host=address.host,
        port=address.port,
        user=address.user,
        password=address.password,
        db=address.database or None,
        autocommit=True,
    )

    async def execute(text: str) -> None:
        async with connection.cursor() as cursor:
            await cursor.execute(text)

    try:
        yield connection, execute
    finally:
        await connection.ensure_closed()
