"""The same requests without a product: `python -m bench.bare_client KIND URL COUNT CONNECTIONS WARM_UP`.

KIND is `webhooks`, `event` or `events`; so many as WARM_UP says go before. Bytes that were made before go out on
connections that are open already, each after the answer to the last; of an answer only its first line and its length
are looked at. Prints `ready`, waits for a line on its standard input, and prints the seconds that it took.
"""

import asyncio
import json
import os
import ssl
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import cycle, islice
from typing import cast
from urllib.parse import urlsplit

import uvloop

from bench.payload import PAYLOAD, SECRET
from tidings.courier import signature_headers, webhook_id
from tidings.courier.exchange import opening, request_bytes
from tidings.decisions.destinations import Destination

EVENTS_AT_ONCE = 100
DIFFERENT = 1024
"""Webhooks, one after the other, and then the first again."""
_GOOD = b"HTTP/1.1 2"
_END, _LENGTH = b"\r\n\r\n", b"content-length: "
_INSTALLATION = "a-bench"


class Sender(asyncio.Protocol):
    """One connection: the next request, and the next after its answer, until there is none left."""

    _waiting = b""

    def begin(self, requests: Iterator[bytes]) -> "asyncio.Future[None]":
        self._requests = requests
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next()
        return self.done

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def _next(self) -> None:
        request = next(self._requests, None)
        if request is not None:
            self._transport.write(request)
        elif not self.done.done():
            self.done.set_result(None)

    def data_received(self, data: bytes) -> None:
        data = self._waiting + data if self._waiting else data
        end = data.find(_END)
        if end < 0 or len(data) < _whole(data, end):
            self._waiting = data
            return
        self._waiting = b""
        if data.startswith(_GOOD):
            self._next()
        else:
            self.done.set_exception(RuntimeError(f"the endpoint answered {data[:500]!r}"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or RuntimeError("the endpoint has closed"))


def _whole(data: bytes, end: int) -> int:
    start = data.lower().index(_LENGTH, 0, end) + len(_LENGTH)
    return end + len(_END) + int(data[start : data.index(b"\r", start)])


def webhooks(url: str) -> Sequence[bytes]:
    """As the worker makes them, signature and all."""
    parts = urlsplit(url)
    assert parts.hostname
    port = parts.port or (443 if parts.scheme == "https" else 80)
    begin = opening(Destination(parts.scheme, parts.hostname, port, parts.path or "/", url), "bench")
    body = PAYLOAD.encode()
    return [request_bytes(begin, signed_headers(number, body), body) for number in range(DIFFERENT)]


def signed_headers(number: int, body: bytes) -> tuple[tuple[str, str], ...]:
    return (
        ("content-type", "application/json"),
        *signature_headers(webhook_id(_INSTALLATION, number, 1), 1_700_000_000 + number, body, (SECRET,)),
        ("tidings-event-type", "order.paid"),
        ("tidings-correlation-id", f"c-{number}"),
        ("tidings-attempt", "1"),
    )


def events(url: str) -> Sequence[bytes]:
    """A list of them, for our API; the key is in the environment."""
    body = json.dumps([{"event_type": "order.paid", "payload": json.loads(PAYLOAD)}] * EVENTS_AT_ONCE).encode()
    return [_post(url, body)]


def one_event(url: str) -> Sequence[bytes]:
    body = json.dumps({"event_type": "order.paid", "payload": json.loads(PAYLOAD)}).encode()
    return [_post(url, body)]


def _post(url: str, body: bytes) -> bytes:
    parts = urlsplit(url)
    head = (
        f"POST {parts.path} HTTP/1.1\r\nhost: {parts.netloc}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {os.environ.get('TIDINGS_ADMIN_KEY', '')}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


KINDS = {"webhooks": webhooks, "events": events, "event": one_event}


async def send(kind: str, url: str, count: int, connections: int, warm_up: int) -> float:
    parts, loop, bytes_of = urlsplit(url), asyncio.get_running_loop(), KINDS[kind](url)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    assert parts.hostname is not None
    assert parts.port is not None
    senders = [
        (await loop.create_connection(Sender, parts.hostname, parts.port, ssl=tls))[1] for _ in range(connections)
    ]

    async def all_of(number: int) -> float:
        began, requests = time.perf_counter(), islice(cycle(bytes_of), number)
        await asyncio.gather(*(sender.begin(requests) for sender in senders))
        return time.perf_counter() - began

    await all_of(warm_up)
    print("ready", flush=True)
    await loop.run_in_executor(None, sys.stdin.readline)
    return await all_of(count)


if __name__ == "__main__":
    kind, url, *numbers = sys.argv[1:]
    print(uvloop.run(send(kind, url, *map(int, numbers))), flush=True)
