"""The clients, on the API of a test; and a way there on which answers get lost."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import urlsplit

import pytest

import tidings
from tests.api.conftest import Served, serving
from tests.support.database import Database


class Lossy:
    """A way to a server on which the first `lost` answers are thrown away, after the server has given them."""

    def __init__(self, url: str, lost: int) -> None:
        self._url = urlsplit(url)
        self._server: asyncio.Server | None = None
        self.lost = lost
        self.requests = 0

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request for each connection, so that it is clear where it ends."""
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
        )
        body = await reader.readexactly(length)
        self.requests += 1
        there, back = await asyncio.open_connection(self._url.hostname, self._url.port)
        back.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1) + body)
        answer = await there.read()
        back.close()
        if self.lost:
            self.lost -= 1
        else:
            writer.write(answer)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        writer.close()


@pytest.fixture
async def served(engine: Database) -> AsyncIterator[Served]:
    async with serving(engine) as served:
        yield served


@pytest.fixture
async def client(served: Served) -> AsyncIterator[tidings.AsyncClient]:
    async with tidings.AsyncClient(served.url, served.keys["admin"]) as client:
        yield client
