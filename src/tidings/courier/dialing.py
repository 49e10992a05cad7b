"""Makes connections: to the very addresses that the guard has checked, the faster family first, then TLS by name."""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from itertools import chain, zip_longest

from tidings.courier.connection import Connection
from tidings.courier.error_codes import BLOCKED_ADDRESS, CONNECT_ERROR, TLS_ERROR, Failed
from tidings.courier.guard import Guard
from tidings.decisions.addresses import Address
from tidings.decisions.destinations import Destination

MOST_ADDRESSES = 8
HEAD_START = 0.25  # seconds that an address has before the next one is tried beside it


def new_tls_context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    # Since 3.13 Python refuses authorities that lack formal extensions, as many private ones do and nobody else minds.
    # Who signed what is verified as before; an endpoint must not fall silent because we run on another Python.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


async def connect(guard: Guard, addresses: Sequence[Address], port: int, deadline: float) -> socket.socket:
    """The first connection that comes about. Fails with `connect_error`."""
    attempts: set[asyncio.Task[socket.socket]] = set()
    try:
        async with asyncio.timeout_at(deadline):
            return await _race(guard, by_turns(addresses)[:MOST_ADDRESSES], port, attempts)
    except OSError:
        raise Failed(CONNECT_ERROR) from None
    finally:
        await _call_off(attempts)


async def secure(
    connection: Connection, sock: socket.socket, destination: Destination, tls: ssl.SSLContext, deadline: float
) -> None:
    """Gives the connection its socket, for https with TLS, where the certificate must be for the name of the URL."""
    is_https = destination.scheme == "https"
    loop = asyncio.get_running_loop()
    try:
        connection.watch(sock)
        async with asyncio.timeout_at(deadline):
            await loop.create_connection(
                lambda: connection,
                sock=sock,
                ssl=tls if is_https else None,
                server_hostname=destination.host if is_https else None,
            )
    except (OSError, ValueError, RuntimeError):
        raise Failed(TLS_ERROR if is_https else CONNECT_ERROR) from None


def by_turns(addresses: Sequence[Address]) -> list[Address]:
    """One of each family in turn, beginning with the family that the system prefers."""
    first = [address for address in addresses if address.version == addresses[0].version]
    second = [address for address in addresses if address.version != addresses[0].version]
    pairs = zip_longest(first, second)
    return [address for address in chain.from_iterable(pairs) if address is not None]


async def _race(
    guard: Guard, addresses: Sequence[Address], port: int, attempts: set[asyncio.Task[socket.socket]]
) -> socket.socket:
    failure: OSError = ConnectionError("there is no address")
    waiting = [*addresses]
    while waiting or attempts:
        if waiting:
            attempts.add(asyncio.create_task(_connect_to(guard, waiting.pop(0), port)))
        done, _ = await asyncio.wait(
            attempts, timeout=HEAD_START if waiting else None, return_when=asyncio.FIRST_COMPLETED
        )
        for attempt in done:
            attempts.remove(attempt)
            error = attempt.exception()
            if error is None:
                return attempt.result()
            if not isinstance(error, OSError):
                raise error
            failure = error
    raise failure


async def _connect_to(guard: Guard, address: Address, port: int) -> socket.socket:
    guard.judge(address, port)
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, (str(address), port))
        if ip_address(sock.getpeername()[0]) != address:
            raise Failed(BLOCKED_ADDRESS)
    except BaseException:
        sock.close()
        raise
    return sock


async def _call_off(attempts: set[asyncio.Task[socket.socket]]) -> None:
    """Those that lost the race, or were just too late."""
    for attempt in attempts:
        attempt.cancel()
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, socket.socket):
            outcome.close()
