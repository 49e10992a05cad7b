"""Receivers as there are everywhere: a healthy one, a slow one, a flaky one, and one that is down.

Each keeps its own count, and checks signatures by the words of the standard, not with our code.
"""

import asyncio
import base64
import hashlib
import hmac
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httptools

ADDRESS = "127.0.0.1"
CANCELLED = "order.cancelled"
_PHRASES = {200: "OK", 400: "Bad Request", 500: "Internal Server Error", 503: "Service Unavailable"}


@dataclass
class Receiver:
    """`answers` gives the status of its n-th request, by that and by the attempt; `taken` has what it took, by id."""

    name: str
    describes: str
    answers: Callable[[int, int], int]
    delay: float = 0.0
    event_type: str = "*"
    secret: str = ""
    requests: int = 0
    unsigned: int = 0
    taken: dict[str, int] = field(default_factory=dict)
    port: int = 0

    @property
    def url(self) -> str:
        return f"https://{ADDRESS}:{self.port}/{self.name}"

    def answer(self, headers: Mapping[str, str], body: bytes) -> int:
        self.requests += 1
        if not is_signed(self.secret, headers, body):
            self.unsigned += 1
            return 400
        status = self.answers(self.requests, int(headers.get("tidings-attempt", "1")))
        if status == 200:
            self.taken[headers["webhook-id"]] = self.taken.get(headers["webhook-id"], 0) + 1
        return status

    async def serve(self, certificate: Path) -> asyncio.Server:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        server = await asyncio.get_running_loop().create_server(lambda: _Talk(self), ADDRESS, 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        return server


def four_receivers() -> list[Receiver]:
    return [
        Receiver("healthy", "takes everything at once", lambda *_: 200),
        Receiver("slow", "takes everything, 100 ms later", lambda *_: 200, delay=0.1),
        Receiver(
            "flaky", "fails every third time", lambda number, attempt: 503 if number % 3 == 0 and attempt < 3 else 200
        ),
        Receiver("dead", "is down, and comes back later", lambda *_: 500, event_type=CANCELLED),
    ]


def is_signed(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    """By the words of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`, under the secret after `whsec_`."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = [part.removeprefix("v1,") for part in headers.get("webhook-signature", "").split()]
    return any(hmac.compare_digest(expected, one) for one in given)


class _Talk(asyncio.Protocol):
    """One connection; requests come one after the other."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._parser: Any = httptools.HttpRequestParser(self)
        self._headers: dict[str, str] = {}
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._headers, self._body = {}, b""

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        status = self._receiver.answer(self._headers, self._body)
        if self._receiver.delay:
            asyncio.get_running_loop().call_later(self._receiver.delay, self._reply, status)
        else:
            self._reply(status)

    def _reply(self, status: int) -> None:
        if not self._transport.is_closing():
            self._transport.write(f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-length: 0\r\n\r\n".encode())
