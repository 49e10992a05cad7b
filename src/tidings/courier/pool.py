"""The open connections: at most so many to a host and in all; idle ones are kept for a while; who waits has a turn."""

import asyncio
from collections import deque

from tidings.courier.connection import Connection
from tidings.courier.error_codes import NO_FREE_CONNECTION, Failed


class _Host:
    __slots__ = ("idle", "open", "waiting")

    def __init__(self) -> None:
        self.open = 0
        self.idle: list[Connection] = []
        self.waiting: deque[asyncio.Future[Connection | None]] = deque()


class Pool:
    """A place is a right to have a connection open: taken before dialling, given back when the connection is closed."""

    def __init__(self, connections: int, per_host: int, idle_seconds: float) -> None:
        self._connections = connections
        self._per_host = per_host
        self._idle_seconds = idle_seconds
        self._hosts: dict[str, _Host] = {}
        self._members: set[Connection] = set()
        self._idle: dict[Connection, None] = {}  # of all hosts, longest idle first
        self._hungry: dict[str, None] = {}  # hosts for which somebody waits, by turns
        self._places = 0
        self._closed = False

    @property
    def places_taken(self) -> int:
        return self._places

    def take(self, key: str) -> Connection | None:
        """An idle connection that the endpoint has not closed meanwhile. The one used last is the likeliest to live."""
        host = self._hosts.get(key)
        while host is not None and host.idle:
            connection = host.idle.pop()
            del self._idle[connection]
            if connection.is_fresh():
                return connection
            connection.close()
        return None

    async def place(self, key: str, deadline: float) -> Connection | None:
        """Waits for a connection that becomes free, or for a place (None): then dial, and `join` or `give_back`."""
        if self._closed:
            raise Failed(NO_FREE_CONNECTION)
        host = self._hosts.get(key)
        if (host is None or host.open < self._per_host) and self._make_room():
            self._take_place(key)
            return None
        return await self._wait(key, deadline)

    def join(self, connection: Connection) -> None:
        """Fills a place that was taken; the connection gives it back itself when it ends."""
        self._members.add(connection)

    def give_back(self, key: str) -> None:
        """A place for which no connection came about."""
        self._leave(key)
        self._serve()

    def release(self, connection: Connection) -> None:
        key = connection.key
        if self._closed:
            connection.close()
            return
        turn = self._next_in_line(key) if key in self._hungry and not self._is_others_turn(key) else None
        if turn is not None:
            turn.set_result(connection)
            return
        self._hosts[key].idle.append(connection)
        self._idle[connection] = None
        connection.rest(self._idle_seconds)
        if self._hungry:
            self._serve()

    def forget(self, connection: Connection) -> None:
        if connection in self._members:
            self._remove(connection)
            self._serve()

    async def close(self) -> None:
        self._closed = True
        for key in [*self._hungry]:
            while key in self._hungry and (turn := self._next_in_line(key)) is not None:
                turn.set_exception(Failed(NO_FREE_CONNECTION))
        members = [*self._members]
        for connection in members:
            connection.close()
        for _ in range(100):  # until the event loop has let go of the sockets
            if all(connection.lost for connection in members):
                return
            await asyncio.sleep(0.001)

    async def _wait(self, key: str, deadline: float) -> Connection | None:
        turn: asyncio.Future[Connection | None] = asyncio.get_running_loop().create_future()
        self._hosts.setdefault(key, _Host()).waiting.append(turn)
        self._hungry[key] = None
        try:
            async with asyncio.timeout_at(deadline):
                return await turn
        except TimeoutError:
            self._stop_waiting(key, turn)
            raise Failed(NO_FREE_CONNECTION) from None
        except BaseException:
            self._stop_waiting(key, turn)
            raise

    def _stop_waiting(self, key: str, turn: asyncio.Future[Connection | None]) -> None:
        """Lets somebody else have what came too late. A turn that was given up is passed over when it comes."""
        if turn.done() and not turn.cancelled() and turn.exception() is None:
            connection = turn.result()
            if connection is None:
                self.give_back(key)
            else:
                self.release(connection)
        turn.cancel()
        self._tidy(key)

    def _serve(self) -> None:
        """Gives places to those who wait, host by host, as long as there are any."""
        while self._hungry and not self._closed:
            key = next((key for key in self._hungry if self._hosts[key].open < self._per_host), None)
            if key is None or not self._make_room():
                return
            turn = self._next_in_line(key)
            if turn is not None:
                self._take_place(key)
                turn.set_result(None)

    def _next_in_line(self, key: str) -> asyncio.Future[Connection | None] | None:
        """Whose turn it is at this host, which then goes to the end of the line of hosts."""
        waiting = self._hosts[key].waiting
        del self._hungry[key]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                if waiting:
                    self._hungry[key] = None
                return turn
        self._tidy(key)
        return None

    def _is_others_turn(self, key: str) -> bool:
        """When there is no room in all, hosts take turns; a busy host would otherwise keep its connections for ever."""
        if self._places < self._connections or self._idle:
            return False
        first = next(other for other in self._hungry if other == key or self._hosts[other].open < self._per_host)
        return first != key

    def _make_room(self) -> bool:
        """If need be, by closing the connection that has been idle for longest."""
        if self._places < self._connections:
            return True
        if not self._idle:
            return False
        oldest = next(iter(self._idle))
        self._remove(oldest)
        oldest.close()
        return True

    def _remove(self, connection: Connection) -> None:
        self._members.discard(connection)
        if connection in self._idle:
            del self._idle[connection]
            self._hosts[connection.key].idle.remove(connection)
        self._leave(connection.key)

    def _take_place(self, key: str) -> None:
        self._hosts.setdefault(key, _Host()).open += 1
        self._places += 1

    def _leave(self, key: str) -> None:
        self._places -= 1
        self._hosts[key].open -= 1
        self._tidy(key)

    def _tidy(self, key: str) -> None:
        """Forgets turns that were given up, and hosts to which nothing is open and for which nobody waits."""
        host = self._hosts.get(key)
        if host is None:
            return
        while host.waiting and host.waiting[0].done():
            host.waiting.popleft()
        if not host.waiting:
            self._hungry.pop(key, None)
            if not host.open:
                del self._hosts[key]
