"""One request and its answer, as the front has them: limits of size and time, and the headers of every answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tidings.api.problems import CONTENT_TYPE, Refused, document
from tidings.ids import new_request_id

Message = MutableMapping[str, Any]
ASGIScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

SECONDS_TO_DROP, MOST_DROPPED = 3.0, 32 * 1024 * 1024
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_WITH_BODY = {"POST", "PUT", "PATCH", "DELETE"}
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_POLICY = b"content-security-policy"
_STRICT = [*_HEADERS, (_POLICY, b"default-src 'none'; frame-ancestors 'none'")]
_DOCS = [*_HEADERS, (_POLICY, b"default-src 'none'; style-src 'self'; frame-ancestors 'none'")]
_NAMES = frozenset(name for name, _ in _STRICT)
JSON = b"application/json"
_ACCEPTED = b"".join(
    [
        b"HTTP/1.1 202 Accepted\r\ncontent-type: " + JSON + b"\r\ncontent-length: %d\r\n",
        *(name + b": " + value + b"\r\n" for name, value in _STRICT),
        b"x-request-id: %b\r\n",
    ]
)


@dataclass
class Exchange:
    """One request and what has been said to it so far."""

    scope: ASGIScope
    receive: Receive
    send: Send
    headers: Mapping[bytes, bytes]
    request_id: str
    room: int
    taken: int = 0
    complete: bool = False
    status: int = 0

    @property
    def address(self) -> str:
        client = self.scope.get("client")
        return client[0] if client else ""

    def check_head(self, wanted: bytes) -> None:
        """What can be seen before the body has come: how long it is, and of which kind."""
        length = self.headers.get(b"content-length", b"")
        has_body = b"transfer-encoding" in self.headers or length not in (b"", b"0")
        self.complete = not has_body
        if length.isdigit() and int(length[:20]) > self.room:
            raise _too_large(self.room)
        kind = self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if has_body and self.scope["method"] in _WITH_BODY and kind != wanted:
            raise Refused("unsupported_media_type", f"Send it with `Content-Type: {wanted.decode()}`.")
        if self.headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refused("unsupported_media_type", "Send it uncompressed.")

    async def body(self) -> bytes:
        """All of it, with an end to its size; how long it may take, the front knows."""
        parts: list[bytes] = []
        while not self.complete:
            message = await self._read()
            if message["type"] == "http.disconnect":
                raise Refused("malformed", "The request ended before its body.")
            parts.append(message.get("body", b""))
        return b"".join(parts)

    async def _read(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.taken += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self.taken > self.room:
                raise _too_large(self.room)
        return message

    async def say(self, message: Message) -> None:
        """As ASGI's send, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name.lower() for name, _ in message.get("headers", ())}
            more = _DOCS if self.scope["path"] == "/docs" else _STRICT
            message["headers"] = [
                *message.get("headers", ()),
                *(more if own.isdisjoint(_NAMES) else [one for one in more if one[0] not in own]),
                (b"x-request-id", self.request_id.encode()),
            ]
        await self.send(message)

    async def answer(self, status: int, body: bytes, content_type: bytes, headers: Mapping[str, str] = {}) -> None:
        given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        length = (b"content-length", str(len(body)).encode())
        start = {"type": "http.response.start", "status": status}
        await self.say({**start, "headers": [(b"content-type", content_type), length, *given]})
        await self.send({"type": "http.response.body", "body": body})

    async def accept(self, body: bytes) -> None:
        """The answer to what was published: at once, where the server can do so."""
        at_once = self.scope.get("tidings.at_once")
        if at_once and at_once(_ACCEPTED % (len(body), self.request_id.encode()), body):
            self.status = 202
        else:
            await self.answer(202, body, JSON)

    async def refuse(self, refused: Refused) -> None:
        status, body = document(refused, self.scope["path"], self.request_id)
        if not self.complete:
            # What is still on the way belongs to no next request.
            refused.headers["Connection"] = "close"
            await self._drop_the_rest()
        await self.answer(status, body, CONTENT_TYPE.encode(), refused.headers)

    async def _drop_the_rest(self) -> None:
        """Some of it: whoever is still sending when the connection is closed can't read why."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_DROP):
                while not self.complete and self.taken < MOST_DROPPED:
                    message = await self.receive()
                    self.taken += len(message.get("body", b""))
                    self.complete = not message.get("more_body", False)


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece; then whatever comes after it."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return waiting.pop() if waiting else await receive()

    return read


def request_id_of(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id")
    return given.decode() if given and _SANE_ID.fullmatch(given) else new_request_id()


def _too_large(room: int) -> Refused:
    return Refused("too_large", f"A body may have {room} bytes here.")
