"""The clients that are compared: each sends the same signed webhooks, with the same limits."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network

from bench.bare_client import DIFFERENT, signed_headers
from bench.ports import LOOPBACK
from tidings.courier import Courier, Guard, Request

Send = Callable[[int], Awaitable[int | None]]
BODY = b'{"type":"user.created","data":"' + b"x" * 990 + b'"}'
TIMEOUT = 15
# Made before: signing costs the same for everybody.
HEADERS = [signed_headers(number, BODY) for number in range(DIFFERENT)]


@asynccontextmanager
async def ours(url: str, trusted: ssl.SSLContext, connections: int) -> AsyncIterator[Send]:
    guard = Guard(allow_networks=(ip_network("127.0.0.0/8"),), allow_http_hosts=(LOOPBACK,))
    courier = Courier(guard, connections=connections, per_host=connections, tls=trusted)

    async def send(number: int) -> int | None:
        return (await courier.send(Request(url, BODY, HEADERS[number % DIFFERENT], TIMEOUT))).status

    yield send
    await courier.close()


@asynccontextmanager
async def aiohttp(url: str, trusted: ssl.SSLContext, connections: int) -> AsyncIterator[Send]:
    """Without a guard, which would cost it a little more."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=connections, ssl=trusted)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=TIMEOUT),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"accept-encoding": "identity"},
    ) as session:

        async def send(number: int) -> int | None:
            async with session.post(
                url, data=BODY, headers=HEADERS[number % DIFFERENT], allow_redirects=False
            ) as response:
                await response.content.read(64 * 1024)
                return response.status

        yield send


SENDERS = {"ours": ours, "aiohttp": aiohttp}
