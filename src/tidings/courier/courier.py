"""Sends requests. Whatever the network or the endpoint does, each one ends with a result, by its deadline."""

import asyncio
import ssl
from importlib.metadata import version
from time import perf_counter
from typing import NamedTuple

from tidings.courier.connection import Connection, Reading
from tidings.courier.dialing import connect, new_tls_context, secure
from tidings.courier.error_codes import CONNECT_ERROR, Failed
from tidings.courier.exchange import Request, Result, opening, request_bytes
from tidings.courier.guard import Guard
from tidings.courier.pool import Pool
from tidings.decisions.destinations import Destination

REMEMBERED_URLS = 10_000


class _Way(NamedTuple):
    """What is the same for all requests to one URL."""

    destination: Destination
    opening: str
    key: str


class Courier:
    """The limits are for this process: connections in all and to a host, seconds, and bytes of a response."""

    def __init__(
        self,
        guard: Guard,
        *,
        connections: int = 256,
        per_host: int = 64,
        idle_seconds: float = 30,
        connect_seconds: float = 5,
        max_response: int = 64 * 1024,
        excerpt_size: int = 1024,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._guard = guard
        self._pool = Pool(connections, per_host, idle_seconds)
        self._connect_seconds = connect_seconds
        self._reading = Reading(max_response, excerpt_size)
        self._tls = tls or new_tls_context()
        self._user_agent = f"tidings/{version('tidings')}"
        self._ways: dict[str, _Way] = {}

    @property
    def open_connections(self) -> int:
        return self._pool.places_taken

    async def send(self, request: Request) -> Result:
        """Raises only when it is cancelled; the request is given up then."""
        began = perf_counter()
        try:
            way = self._ways.get(request.url) or self._find_way(request.url)
            data = request_bytes(way.opening, request.headers, request.body)
            deadline = asyncio.get_running_loop().time() + request.timeout
            connection = self._pool.take(way.key) or await self._open(way, deadline)
        except Failed as failure:
            return Result(None, failure.code, b"", None, round((perf_counter() - began) * 1000))
        try:
            return await connection.send(data, began, deadline)
        except asyncio.CancelledError:
            connection.close()
            raise

    async def close(self) -> None:
        """Ends what is under way. Nothing can be sent after it."""
        await self._pool.close()
        await self._guard.close()

    def _find_way(self, url: str) -> _Way:
        destination = self._guard.destination(url)
        if len(self._ways) >= REMEMBERED_URLS:
            del self._ways[next(iter(self._ways))]
        key = f"{destination.scheme} {destination.host} {destination.port}"
        way = self._ways[url] = _Way(destination, opening(destination, self._user_agent), key)
        return way

    async def _open(self, way: _Way, deadline: float) -> Connection:
        """One that became free while we waited, or a new one."""
        while connection := await self._pool.place(way.key, deadline):
            if connection.is_fresh():
                return connection
            connection.close()
        return await self._dial(way, deadline)

    async def _dial(self, way: _Way, deadline: float) -> Connection:
        try:
            addresses = await self._guard.addresses(way.destination, deadline)
            deadline = min(deadline, asyncio.get_running_loop().time() + self._connect_seconds)
            sock = await connect(self._guard, addresses, way.destination.port, deadline)
        except BaseException:
            self._pool.give_back(way.key)
            raise
        connection = Connection(self._pool, way.key, self._reading)
        self._pool.join(connection)
        try:
            await secure(connection, sock, way.destination, self._tls, deadline)
            if not connection.is_open():
                raise Failed(CONNECT_ERROR)
        except BaseException:
            connection.close()
            sock.close()
            raise
        return connection
