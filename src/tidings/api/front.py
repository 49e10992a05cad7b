"""What every request passes first: its id, its size and kind, its key; and what every answer passes last.

`POST /v1/events` is answered from here, without the framework: it is the one path whose speed matters.
"""

import asyncio
import math
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tidings.api.context import Api, refuse_unless
from tidings.api.denials import Denials
from tidings.api.faults import announce
from tidings.api.origins import origin
from tidings.api.problems import CONTENT_TYPE, Refused, document, of_error
from tidings.api.publishing import MOST_BYTES, Publisher
from tidings.api.throttle import name_of
from tidings.console.app import FORM, is_of_console
from tidings.decisions.keys import may_be_guessed, what_is_wrong
from tidings.errors import TidingsError
from tidings.model.key import Caller, Scope
from tidings.telemetry.asking import asking

Message = MutableMapping[str, Any]
ASGIScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[ASGIScope, Receive, Send], Awaitable[None]]

SECONDS_TO_ARRIVE = 30.0
SECONDS_TO_ANSWER = 60.0
SECONDS_TO_DROP, MOST_DROPPED = 3.0, 32 * 1024 * 1024
# Beside the payload of a task there are a few short fields.
_ROOM = 64 * 1024
_SANE_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_WITH_BODY = {"POST", "PUT", "PATCH", "DELETE"}
_PUBLISH = ("POST", "/v1/events")
JSON = b"application/json"
FORBIDDEN = 403
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_STRICT = b"default-src 'none'; frame-ancestors 'none'"
_DOCS = b"default-src 'none'; style-src 'self'; frame-ancestors 'none'"


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
    extra: list[tuple[bytes, bytes]] = field(default_factory=list)

    @property
    def address(self) -> str:
        client = self.scope.get("client")
        return client[0] if client else ""

    async def body(self) -> bytes:
        """All of it, with an end to patience and to size."""
        parts: list[bytes] = []
        while not self.complete:
            message = await self._read()
            if message["type"] == "http.disconnect":
                raise Refused("malformed", "The request ended before its body.")
            parts.append(message.get("body", b""))
        return b"".join(parts)

    async def _read(self) -> Message:
        try:
            message = await asyncio.wait_for(self.receive(), SECONDS_TO_ARRIVE)
        except TimeoutError:
            raise Refused("too_slow", f"The body did not come within {SECONDS_TO_ARRIVE:.0f} seconds.") from None
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
            more = [*_HEADERS, (b"content-security-policy", _policy(self.scope["path"])), *self.extra]
            message["headers"] = [
                *message.get("headers", ()),
                *((name, value) for name, value in more if name not in own),
                (b"x-request-id", self.request_id.encode()),
            ]
        await self.send(message)

    async def answer(self, status: int, body: bytes, content_type: bytes, headers: Mapping[str, str] = {}) -> None:
        given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        length = (b"content-length", str(len(body)).encode())
        start = {"type": "http.response.start", "status": status}
        await self.say({**start, "headers": [(b"content-type", content_type), length, *given]})
        await self.send({"type": "http.response.body", "body": body})

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


class Front:
    def __init__(self, api: Api, app: App, console: App) -> None:
        self._api = api
        self._app = app
        self._console = console
        self._publisher = Publisher(api)
        self._denials = Denials(api)
        self._most = api.limits.max_payload + _ROOM

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        if self._api.proxies and scope.get("client"):
            peer, port = scope["client"]
            scope["client"] = (origin(peer, headers, self._api.proxies), port)
        publishes = (scope["method"], scope["path"]) == _PUBLISH
        room = MOST_BYTES if publishes else self._most
        exchange = Exchange(scope, receive, send, headers, _request_id(headers), room)
        scope["tidings.request_id"], scope["tidings.api"] = exchange.request_id, self._api
        with asking(exchange.request_id, exchange.address):
            await self._serve(exchange, publishes)
            if exchange.status == FORBIDDEN and (caller := scope.get("tidings.caller")):
                await self._denials.denied(caller, scope["method"], scope["path"])

    async def _serve(self, exchange: Exchange, publishes: bool) -> None:
        scope = exchange.scope
        try:
            async with asyncio.timeout(SECONDS_TO_ARRIVE + SECONDS_TO_ANSWER):
                await self._answer(exchange, publishes)
        except Refused as refused:
            await self._refuse(exchange, refused)
        except TidingsError as error:
            announce(scope, error)
            await self._refuse(exchange, of_error(error))
        except TimeoutError:
            await self._refuse(exchange, Refused("outcome_unknown", "It took too long. Look before you ask again."))
        except Exception as error:
            announce(scope, error)
            await self._refuse(exchange, of_error(TidingsError("")))

    async def _answer(self, exchange: Exchange, publishes: bool) -> None:
        if is_of_console(exchange.scope["path"]):
            await self._show(exchange)
            return
        _check_body(exchange, JSON)
        if exchange.scope["path"].startswith("/v1/"):
            exchange.scope["tidings.caller"] = await self._caller(exchange)
        if publishes:
            await self._publish(exchange)
        else:
            body = await exchange.body()
            await self._app(exchange.scope, _replayed(body, exchange.receive), exchange.say)

    async def _show(self, exchange: Exchange) -> None:
        _check_body(exchange, FORM)
        body = await exchange.body()
        await self._console(exchange.scope, _replayed(body, exchange.receive), exchange.say)

    async def _publish(self, exchange: Exchange) -> None:
        caller: Caller = exchange.scope["tidings.caller"]
        refuse_unless(caller, Scope.PUBLISHER)
        if exchange.scope["query_string"]:
            raise Refused("invalid", "Publishing takes no query parameters.", [("?", "is not expected")])
        key = exchange.headers.get(b"idempotency-key")
        body = await self._publisher.published(caller, await exchange.body(), key)
        await exchange.answer(202, body, b"application/json")

    async def _caller(self, exchange: Exchange) -> Caller:
        given = [value for name, value in exchange.scope["headers"] if name == b"authorization"]
        scheme, _, key = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthenticated("Send one header `Authorization: Bearer KEY`.")
        caller = await self._known(key.strip(), exchange.address)
        if caller is None:
            raise _unauthenticated(what_is_wrong(key.strip()))
        return caller

    async def _known(self, key: str, address: str) -> Caller | None:
        """Whose key it is. From where too many were wrong lately, one that could have been guessed is not looked at."""
        throttle, name = self._api.throttle, name_of(address)
        wait = throttle.seconds_left(name)
        if wait and may_be_guessed(key):
            raise _too_often(wait)
        caller = await self._api.checker.caller(key)
        if caller is None:
            throttle.failed(name)
            if wait:
                raise _too_often(wait)
            if throttle.holds(name):
                await self._denials.throttled(address)
        return caller

    async def _refuse(self, exchange: Exchange, refused: Refused) -> None:
        if not exchange.status:
            await exchange.refuse(refused)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece; then whatever comes after it."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return waiting.pop() if waiting else await receive()

    return read


def _check_body(exchange: Exchange, wanted: bytes) -> None:
    length = exchange.headers.get(b"content-length", b"")
    has_body = b"transfer-encoding" in exchange.headers or length not in (b"", b"0")
    exchange.complete = not has_body
    if length.isdigit() and int(length[:20]) > exchange.room:
        raise _too_large(exchange.room)
    kind = exchange.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if has_body and exchange.scope["method"] in _WITH_BODY and kind != wanted:
        raise Refused("unsupported_media_type", f"Send it with `Content-Type: {wanted.decode()}`.")
    if exchange.headers.get(b"content-encoding", b"identity") != b"identity":
        raise Refused("unsupported_media_type", "Send it uncompressed.")


def _request_id(headers: Mapping[bytes, bytes]) -> str:
    given = headers.get(b"x-request-id", b"")
    return given.decode() if _SANE_ID.fullmatch(given) else new_request_id()


def new_request_id() -> str:
    return f"req-{uuid.uuid4().hex}"


def _policy(path: str) -> bytes:
    return _DOCS if path == "/docs" else _STRICT


def _too_large(room: int) -> Refused:
    return Refused("too_large", f"A body may have {room} bytes here.")


def _too_often(wait: float) -> Refused:
    seconds = math.ceil(wait)
    return Refused(
        "limit_reached",
        f"Too many keys from this address were wrong. Try again in {seconds} seconds.",
        headers={"Retry-After": str(seconds)},
    )


def _unauthenticated(detail: str) -> Refused:
    return Refused("unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="tidings"'})
