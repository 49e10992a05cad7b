"""A receiver for one's own trials: checks signatures, answers challenges, and tells what came. Not for production."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from tidings.courier.signing import verify
from tidings.decisions.verifying import answer_challenge
from tidings.errors import SignatureRefused, TidingsError

MAX_HEAD, MAX_BODY = 64 * 1024, 2 * 1024**2
REMEMBERED = 10_000
DELIVERY, CHALLENGE = "delivery", "challenge"


@dataclass(frozen=True)
class Heard:
    """One request and how it was answered. `is_signed` is None where no secret is known."""

    path: str
    headers: dict[str, str]
    body: bytes
    kind: str
    is_signed: bool | None
    problem: str
    answered: int
    is_repeated: bool


@dataclass
class _Incoming:
    """What the parser calls, for one request."""

    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    has_head: bool = False
    is_complete: bool = False
    size: int = 0

    @property
    def is_too_long(self) -> bool:
        return len(self.body) > MAX_BODY or (not self.has_head and self.size > MAX_HEAD)

    def on_url(self, url: bytes) -> None:
        self.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, data: bytes) -> None:
        if not self.is_too_long:
            self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


class Listener:
    """`on_heard` is called for each request, before it is answered."""

    def __init__(
        self, on_heard: Callable[[Heard], None], secrets: Sequence[str] = (), answer: int = HTTPStatus.OK
    ) -> None:
        self._on_heard = on_heard
        self._secrets = secrets
        self._answer = answer
        self._known: OrderedDict[str, None] = OrderedDict()
        self._connections: set[asyncio.Task[object]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def listen(self, host: str, port: int) -> Self:
        """From now on, at this port or at a free one."""
        try:
            self._server = await asyncio.start_server(self._serve, host, port)
        except OSError as error:
            raise TidingsError(
                f"Nobody can listen at {host}:{port}: {error.strerror or error}.", "Choose another place with --port."
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        if self._connections:
            await asyncio.wait(self._connections)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        # Also cancelled: what asyncio has left of a connection can't bear a cancelled task.
        with suppress(ConnectionError, HttpParserError, HttpParserUpgrade, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        self._connections.discard(connection)
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; True if another one may follow."""
        incoming = _Incoming()
        parser = HttpRequestParser(incoming)
        while not incoming.is_complete:
            data = await reader.read(MAX_HEAD)
            if not data:
                return False
            incoming.size += len(data)
            parser.feed_data(data)
            if incoming.is_too_long:
                writer.write(_response(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, ""))
                await writer.drain()
                return False
        status, text = self._heard(incoming, parser.get_method() == b"POST")
        writer.write(_response(status, text))
        await writer.drain()
        return bool(parser.should_keep_alive())

    def _heard(self, incoming: _Incoming, is_post: bool) -> tuple[int, str]:
        if not is_post:
            return HTTPStatus.METHOD_NOT_ALLOWED, ""
        body = bytes(incoming.body)
        secret, problem = self._signing_secret(incoming.headers, body)
        answer = None if problem else answer_challenge(body, secret)
        status = HTTPStatus.UNAUTHORIZED if problem else self._answer if answer is None else HTTPStatus.OK
        self._on_heard(
            Heard(
                incoming.path,
                incoming.headers,
                body,
                DELIVERY if answer is None else CHALLENGE,
                not problem if self._secrets else None,
                problem,
                status,
                not problem and self._is_known(incoming.headers.get("webhook-id", "")),
            )
        )
        return status, answer or ""

    def _signing_secret(self, headers: dict[str, str], body: bytes) -> tuple[str | None, str]:
        """The secret with which it was signed, or what is wrong with it."""
        problem = ""
        for secret in self._secrets:
            try:
                verify(headers, body, secret)
                return secret, ""
            except SignatureRefused as refused:
                problem = refused.what
        return None, problem

    def _is_known(self, message: str) -> bool:
        """Receivers know by the id what they have had before; so much is remembered and no more."""
        if not message:
            return False
        if message in self._known:
            return True
        self._known[message] = None
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return False


def _response(status: int, text: str) -> bytes:
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Answer"
    body = text.encode()
    head = f"HTTP/1.1 {status:d} {reason}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode("latin-1") + body
