"""A relay to PostgreSQL that lets no notification through, as a pooler in transaction mode."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.support.ports import LOOPBACK

NOTIFICATION = b"A"


@asynccontextmanager
async def deaf_relay(target: int) -> AsyncIterator[int]:
    """Its port."""
    pipes: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(LOOPBACK, target)
        pipes.add(asyncio.create_task(_upwards(reader, up_writer)))
        pipes.add(asyncio.create_task(_downwards(up_reader, writer)))

    server = await asyncio.start_server(connected, LOOPBACK, 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    for pipe in pipes:
        pipe.cancel()
    if pipes:
        await asyncio.wait(pipes)


async def _upwards(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
    writer.close()


async def _downwards(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        kind = await reader.readexactly(1)
        if kind in (b"N", b"S"):  # the answer to a wish for encryption, which is no message
            writer.write(kind)
            kind = await reader.readexactly(1)
        while True:
            length = await reader.readexactly(4)
            body = await reader.readexactly(int.from_bytes(length, "big") - 4)
            if kind != NOTIFICATION:
                writer.write(kind + length + body)
            kind = await reader.readexactly(1)
    writer.close()
