"""Endpoints on loopback, well and ill behaved, and requests to them."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any, Self

from tidings.courier import Request

LOOPBACK_ALLOWED: dict[str, Any] = {
    "allow_networks": (ip_network("127.0.0.0/8"), ip_network("::1")),
    "allow_http_hosts": ("127.0.0.1", "::1", "localhost", "endpoint.example", "other.example"),
}
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
# The deadline of a request that is to miss it, in seconds; and the milliseconds after which it has ended, wherever.
SHORT, SHORT_ENDS_MS = 0.4, 3000

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def request(url: str, body: bytes = b'{"a":1}', timeout: float = 5, **headers: str) -> Request:
    pairs = (
        ("content-type", "application/json"),
        *((name.replace("_", "-"), value) for name, value in headers.items()),
    )
    return Request(url, body, pairs, timeout)


@dataclass
class Endpoint:
    """Listens while it is entered, and does with each connection what `behave` says."""

    behave: Behaviour
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    connections: int = 0
    port: int = 0
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}/hook"

    @property
    def open_connections(self) -> int:
        return len(self._open)

    async def __aenter__(self) -> Self:
        if self.host == "::":  # and every IPv4 address as well
            both = socket.create_server(("::", self.port), family=socket.AF_INET6, dualstack_ipv6=True)
            self._server = await asyncio.start_server(self._serve, sock=both, ssl=self.tls)
        else:
            self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        serving = [*self._open]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self.behave(reader, writer)
        finally:
            self._open.discard(task)
            writer.transport.abort()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """The whole of one request, as it came."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line.partition(b":")[2] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    return head + await reader.readexactly(int(lengths[0]))


def answering(*answers: bytes, then: Behaviour | None = None) -> Behaviour:
    """To each request all of these bytes, piece by piece, for as long as the client likes."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            for answer in answers:
                writer.write(answer)
                await writer.drain()
                await asyncio.sleep(0)
            if then is not None:
                await then(reader, writer)

    return behave


def once(*answers: bytes) -> Behaviour:
    """One answer, and the connection is closed properly."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        for answer in answers:
            writer.write(answer)
            await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    return behave


def keeping(got: list[bytes]) -> Behaviour:
    """The first request is kept as it came, and answered well."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await read_request(reader))
        writer.write(OK)
        await silent(reader, writer)

    return behave


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says nothing more, and waits for the client to go."""
    while await reader.read(65536):
        pass
