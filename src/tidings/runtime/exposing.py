"""Shows what a process counts: `/metrics` for Prometheus, `/healthz` for whoever watches it.

A whole HTTP server is not needed for that: one request for each connection, of which only the first line is read.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, ProcessCollector, generate_latest

from tidings.errors import TidingsError
from tidings.telemetry.metrics import Metrics

# However often somebody asks, the database is asked no more often than this.
SECONDS_FRESH = 5.0
SECONDS_TO_READ = 3.0
SECONDS_TO_ASK = 5.0
LONGEST_HEAD = 16 * 1024


class Exposition:
    """What was counted since it was made, and the depths, which `read_depths` puts into it when they are wanted."""

    def __init__(self, read_depths: Callable[[Metrics], Awaitable[None]]) -> None:
        self._read_depths = read_depths
        self._registry = CollectorRegistry()
        self._metrics = Metrics(self._registry)
        self._metrics.listen()
        ProcessCollector(registry=self._registry)
        self._reading = asyncio.Lock()
        self._read_at = float("-inf")

    async def text(self) -> bytes:
        async with self._reading:
            if time.monotonic() - self._read_at >= SECONDS_FRESH:
                await self._refresh()
                self._read_at = time.monotonic()
        return generate_latest(self._registry)

    async def serve(self, host: str, port: int, stopping: asyncio.Event) -> None:
        """Until all must stop."""
        try:
            server = await asyncio.start_server(self._answer, host, port, limit=LONGEST_HEAD)
        except OSError as error:
            raise TidingsError(
                f"Metrics can't be shown at {host}:{port}: {error.strerror or error}.",
                "Set another metrics_port, or 0 for none.",
            ) from error
        try:
            await stopping.wait()
        finally:
            server.close()

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(SECONDS_TO_READ):
                await self._read_depths(self._metrics)
        except (TidingsError, TimeoutError):
            self._metrics.forget_depths()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Whoever goes away, or sends something else than a request, gets no answer.
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(SECONDS_TO_ASK):
                head = await reader.readuntil(b"\r\n\r\n")
            writer.write(await self._response(head.split(b"\r\n", 1)[0].split(b" ")))
            await writer.drain()
        writer.close()

    async def _response(self, line: list[bytes]) -> bytes:
        match line[:2]:
            case [b"GET", b"/metrics"]:
                return _said("200 OK", await self.text(), CONTENT_TYPE_LATEST)
            case [b"GET", b"/healthz"]:
                return _said("200 OK", b"ok\n")
        return _said("404 Not Found", b"There are /metrics and /healthz.\n")


def _said(status: str, body: bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
