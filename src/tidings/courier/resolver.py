"""Looks names up in threads of its own: a name server that hangs holds up nobody but those who ask for its names."""

import asyncio
import socket
import threading
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

from tidings.courier.error_codes import DNS_ERROR, Failed
from tidings.decisions.addresses import Address

LookUp = Callable[[str], list[Address]]

CACHED_NAMES = 4096
MOST_ADDRESSES = 100  # of one name; no honest one has more


def look_up(host: str) -> list[Address]:
    """All addresses of a name, in the order in which the system would try them. Blocks."""
    found = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [*dict.fromkeys(ip_address(sockaddr[0]) for *_, sockaddr in found)]


class Resolver:
    """Each name is looked up once at a time, whoever asks. A look-up can't be stopped: it keeps its thread until the
    system gives up, but those who ask wait no longer than `seconds`, and no thread keeps the process from ending."""

    def __init__(
        self, look_up: LookUp = look_up, *, threads: int = 64, seconds: float = 3.0, cache_seconds: float = 5.0
    ) -> None:
        self._look_up = look_up
        self._free = asyncio.Semaphore(threads)
        self._seconds = seconds
        self._cache_seconds = cache_seconds
        self._under_way: dict[str, asyncio.Task[list[Address]]] = {}
        self._known: dict[str, tuple[float, list[Address]]] = {}

    async def addresses(self, host: str, deadline: float) -> list[Address]:
        """Fails with `dns_error` if the name is not known, or if the answer takes too long."""
        now = asyncio.get_running_loop().time()
        known = self._known.get(host)
        if known is not None and now < known[0]:
            return known[1]
        task = self._under_way.get(host)
        if task is None:
            task = self._under_way[host] = asyncio.create_task(self._find(host))
            task.add_done_callback(partial(self._found, host))
        try:
            async with asyncio.timeout_at(min(deadline, now + self._seconds)):
                found = await asyncio.shield(task)
        except Exception:
            raise Failed(DNS_ERROR) from None
        if not 1 <= len(found) <= MOST_ADDRESSES:
            raise Failed(DNS_ERROR)
        return found

    async def close(self) -> None:
        """Threads that are still busy end by themselves, unheard."""
        tasks = [*self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find(self, host: str) -> list[Address]:
        async with self._free:
            return await self._in_thread(host)

    def _found(self, host: str, task: asyncio.Task[list[Address]]) -> None:
        del self._under_way[host]
        if task.cancelled() or task.exception() is not None:
            return
        if len(self._known) >= CACHED_NAMES:
            del self._known[next(iter(self._known))]
        self._known[host] = (asyncio.get_running_loop().time() + self._cache_seconds, task.result())

    def _in_thread(self, host: str) -> asyncio.Future[list[Address]]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Address]] = loop.create_future()

        def settle(found: list[Address], error: Exception | None) -> None:
            if answer.done():  # nobody listens any more
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(error)

        def work() -> None:
            found: list[Address] = []
            failure: Exception | None = None
            try:
                found = self._look_up(host)
            except Exception as error:
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, found, failure)

        threading.Thread(target=work, name="look-up", daemon=True).start()
        return answer
