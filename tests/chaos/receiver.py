"""All endpoints in one cheap process: writes each request into its ledger, and only then answers as the path says.

`python -m tests.chaos.receiver LEDGER ADDRESS` prints its port, and later `poison PORT` when a caller is to be killed.
Shares no code with the product.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from tests.chaos.endpoints import BUSY_SECONDS, is_odd
from tests.support.waiting import pause

HEAD_END = b"\r\n\r\n"
# The requests of one attempt are answered differently, so that the stored status tells which of them was believed.
WELL = (200, 201, 202, 203, 207, 208, 226)
ILL = (503, 500, 502, 504, 507, 508, 511)
PIECES = 5


class Ledger:
    """One line for each request, written in one go at the end of the file: it is there whoever dies next."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, line: dict[str, object]) -> None:
        os.write(self._file, json.dumps(line, separators=(",", ":")).encode() + b"\n")


class Exchange(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self, ledger: Ledger, counts: dict[tuple[str, str, int], int]) -> None:
        self._ledger, self._counts = ledger, counts
        self._received = bytearray()
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        for task in self._tasks:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(HEAD_END)) >= 0:
            opening, *lines = self._received[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            last = end + len(HEAD_END) + int(headers.get("content-length", "0"))
            if len(self._received) < last:
                return
            body = bytes(self._received[end + len(HEAD_END) : last])
            del self._received[:last]
            self._answer(opening.split(" ")[1], headers, body)

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> None:
        attempt, message = int(headers.get("tidings-attempt", "0")), headers.get("webhook-id", "")
        key = (path, message, attempt)
        nth = self._counts[key] = self._counts.get(key, -1) + 1
        kind = path.rpartition("/")[2]
        says, answer = self.behaviour(kind, attempt, message, min(nth, 6))
        if kind == "agrees":
            answer = partial(_slowly, status=WELL[min(nth, 6)], body=_challenge_in(body))
        self._ledger.write(
            {
                "at": time.time(),
                "path": path,
                "message": message,
                "timestamp": headers.get("webhook-timestamp", ""),
                "signature": headers.get("webhook-signature", ""),
                "correlation_id": headers.get("tidings-correlation-id", ""),
                "event_type": headers.get("tidings-event-type", ""),
                "attempt": attempt,
                "body": body.decode("utf-8", "surrogateescape"),
                "says": says,
            }
        )
        if isinstance(answer, bytes):
            self._transport.write(answer)
        else:
            task = asyncio.get_running_loop().create_task(self._go_on(answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def behaviour(self, kind: str, attempt: int, message: str, nth: int) -> "tuple[int | None, Answer]":
        return behaviour(kind, attempt, message, nth)

    async def _go_on(self, answer: Callable[[asyncio.Transport], Awaitable[None]]) -> None:
        await answer(self._transport)


Answer = bytes | Callable[[asyncio.Transport], Awaitable[None]]


def behaviour(kind: str, attempt: int, message: str, nth: int) -> tuple[int | None, Answer]:
    """The status that it means to say, and how. None: it never says one."""
    well, ill = WELL[nth], ILL[nth]
    match kind:
        case "slow" | "agrees" | "declines":
            return well, partial(_slowly, status=well)
        case "flapping" if attempt <= (2 if is_odd(message, 40) else is_odd(message, 8)):
            return ill, reply(ill, b"no")
        case "broken":
            return ill, reply(ill, b"no")
        case "busy" if attempt == 1 and is_odd(message, 2):
            return 429, reply(429, b"", f"retry-after: {BUSY_SECONDS}\r\n")
        case "hangs" if is_odd(message, 2):
            return None, _never
        case "drips":
            return well, partial(_by_drops, status=well)
        case "huge":
            return well, reply(well, b"x" * 300_000)
        case "poison":
            return None, _deadly
        case _:
            return well, reply(well, b"ok")


def reply(status: int, body: bytes, headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} Answer\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body


def _challenge_in(body: bytes) -> bytes:
    """What is to be said to show that one wants it."""
    try:
        return str(json.loads(body)["data"]["challenge"]).encode()
    except (ValueError, LookupError, TypeError):
        return b"this is no challenge"


async def _slowly(transport: asyncio.Transport, status: int, body: bytes = b"ok") -> None:
    await pause(random.uniform(0.2, 0.9))
    transport.write(reply(status, body))


async def _never(transport: asyncio.Transport) -> None:
    """Says nothing; the caller has a deadline."""


async def _by_drops(transport: asyncio.Transport, status: int) -> None:
    transport.write(reply(status, b"x" * PIECES)[:-PIECES])
    for _ in range(PIECES):
        await pause(0.1)
        transport.write(b"x")


async def _deadly(transport: asyncio.Transport) -> None:
    sys.stdout.write(f"poison {transport.get_extra_info('peername')[1]}\n")
    sys.stdout.flush()


async def serve(ledger: Ledger, address: str) -> None:
    loop = asyncio.get_running_loop()
    counts: dict[tuple[str, str, int], int] = {}
    server = await loop.create_server(lambda: Exchange(ledger, counts), address, 0, backlog=1000)
    sys.stdout.write(f"port {server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Ledger(Path(sys.argv[1])), sys.argv[2]))
