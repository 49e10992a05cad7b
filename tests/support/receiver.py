"""A real HTTP receiver on loopback: does with each path what it was told, and keeps a ledger of every request.

It shares no code with the product; signatures are checked by the reference library of Standard Webhooks.
"""

import asyncio
import contextlib
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Self

import trustme
from standardwebhooks import Webhook

from tests.support.waiting import pause

HEADERS_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Received:
    """One request, in the order of arrival; `answered` is the status that was sent back, if one was."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    answered: int | None = None

    @property
    def message(self) -> str:
        return self.headers["webhook-id"]

    @property
    def attempt(self) -> int:
        return int(self.headers["tidings-attempt"])

    def verify(self, secret: str) -> None:
        """By the reference library; raises if the signature does not fit."""
        Webhook(secret).verify(self.body, self.headers)


@dataclass
class Answer:
    """What a path does. `hold` is awaited before the answer, `hangs` never answers, `resets` breaks off."""

    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    hangs: bool = False
    resets: bool = False
    hold: asyncio.Event | None = None

    def encoded(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Answer", f"content-length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join(lines).encode() + HEADERS_END + self.body


Behaviour = Callable[[Received], Answer]


class Receiver:
    """Use it as an async context manager. A path that nothing was said about answers 200."""

    def __init__(self, tls: trustme.CA | None = None) -> None:
        self.requests: list[Received] = []
        self.open: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()
        self.most_open_in_all = 0
        self._answers: dict[str, Answer | Behaviour] = {}
        self._tls = tls
        self._connections: set[asyncio.Task[object]] = set()

    def answer(self, path: str, answer: Answer | Behaviour) -> None:
        self._answers[path] = answer

    def url(self, path: str = "/") -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}{path}"

    def at(self, path: str) -> list[Received]:
        return [one for one in self.requests if one.path == path]

    @property
    def answered(self) -> list[Received]:
        return [one for one in self.requests if one.answered is not None]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context(), backlog=1000)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    def _context(self) -> ssl.SSLContext | None:
        if self._tls is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.issue_cert("127.0.0.1").configure_cert(context)
        return context

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        # Also cancelled: what asyncio has left of a connection can't bear a cancelled task.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, asyncio.CancelledError):
            while True:
                await self._exchange(reader, writer)
        self._connections.discard(connection)
        writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(HEADERS_END)).decode("latin-1")
        opening, *lines = head.split("\r\n")[:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        path = opening.split(" ")[1]
        place = len(self.requests)
        self.requests.append(Received(path, headers, body, time.monotonic()))
        with self._counted(path):
            await self._reply(place, writer)

    async def _reply(self, place: int, writer: asyncio.StreamWriter) -> None:
        received = self.requests[place]
        told = self._answers.get(received.path, Answer())
        answer = told if isinstance(told, Answer) else told(received)
        if answer.resets:
            writer.transport.abort()
            raise ConnectionResetError
        if answer.delay:
            await pause(answer.delay)
        if answer.hold is not None:
            await answer.hold.wait()
        if answer.hangs:
            await asyncio.Event().wait()
        self.requests[place] = Received(received.path, received.headers, received.body, received.at, answer.status)
        writer.write(answer.encoded())
        await writer.drain()

    @contextlib.contextmanager
    def _counted(self, path: str) -> Iterator[None]:
        self.open[path] += 1
        self.most_open[path] = max(self.most_open[path], self.open[path])
        self.most_open_in_all = max(self.most_open_in_all, self.open.total())
        try:
            yield
        finally:
            self.open[path] -= 1
