"""One connection to an endpoint, which carries one request at a time and gives each a result, whatever happens."""

import asyncio
import select
import socket
import ssl
from dataclasses import dataclass
from time import perf_counter, time
from typing import Protocol, cast

from tidings.courier.error_codes import CONNECTION_LOST, PROTOCOL_ERROR, TIMEOUT, TLS_ERROR
from tidings.courier.exchange import Result
from tidings.courier.response import ResponseReader
from tidings.courier.retry_after import retry_after_seconds


@dataclass(frozen=True)
class Reading:
    """How much of a response is read, and how much of its body is kept."""

    max_response: int
    excerpt_size: int


class Owner(Protocol):
    """Counts connections, and keeps those that nobody uses."""

    def release(self, connection: "Connection") -> None:
        """It has done its work and can do more."""

    def forget(self, connection: "Connection") -> None:
        """It is of no more use. May be told more than once."""


class Connection(asyncio.Protocol):
    """Has one timer, for the deadline of a request or the end of idling. It is left running when the deadline moves
    further away, and set anew only when it fires, so that a busy connection costs almost no timers."""

    __slots__ = (
        "_began",
        "_deadline",
        "_future",
        "_loop",
        "_owner",
        "_poll",
        "_reader",
        "_timer",
        "_timer_at",
        "_transport",
        "key",
        "lost",
    )

    def __init__(self, owner: Owner, key: str, reading: Reading) -> None:
        self.key = key
        self.lost = False
        self._owner = owner
        self._reader = ResponseReader(reading.max_response, reading.excerpt_size)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._future: asyncio.Future[Result] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = self._deadline = self._began = 0.0

    def watch(self, sock: socket.socket) -> None:
        """Remembers where to look whether the endpoint has closed or said anything."""
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLIN | select.POLLPRI)

    def send(self, data: bytes, began: float, deadline: float) -> asyncio.Future[Result]:
        """Writes a request in one piece. The future always gets a result, at the deadline at the latest."""
        assert self._transport is not None
        self._reader.begin()
        self._began = began
        self._future = self._loop.create_future()
        self._set_timer(deadline)
        self._transport.write(data)
        return self._future

    def rest(self, seconds: float) -> None:
        """Waits for the next request, and closes if none comes."""
        self._set_timer(self._loop.time() + seconds)

    def is_fresh(self) -> bool:
        """Asks the kernel, as the event loop may not have heard yet that the endpoint has closed."""
        return self.is_open() and not (self._poll is not None and self._poll.poll(0))

    def is_open(self) -> bool:
        return not self.lost and self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """At once, without a farewell that a hostile endpoint could draw out. A request under way is lost."""
        self._owner.forget(self)
        self._end(CONNECTION_LOST)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None and not self.lost:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._future is None:
            self.close()
        elif self._reader.feed(data):
            self._answered()

    def eof_received(self) -> None:
        self._end(CONNECTION_LOST)
        self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._end(TLS_ERROR if isinstance(error, ssl.SSLError) else CONNECTION_LOST)
        self.close()

    def _answered(self) -> None:
        reader = self._reader
        assert self._transport is not None
        # An answer that came before the whole request was out: the rest of it would stand before the next one.
        reusable = reader.complete and reader.keep_alive and self._transport.get_write_buffer_size() == 0
        self._end(PROTOCOL_ERROR)
        if reusable:
            self._owner.release(self)
        else:
            self.close()

    def _end(self, ending: str) -> None:
        """Gives the result, if one is awaited."""
        future, self._future = self._future, None
        if future is None or future.done():
            return
        reader = self._reader
        error = reader.error_code(ending)
        wait = None
        if error is not None and reader.answered and reader.retry_after is not None:
            wait = retry_after_seconds(reader.retry_after, time())
        elapsed = round((perf_counter() - self._began) * 1000)
        future.set_result(Result(reader.status, error, reader.excerpt, wait, elapsed))

    def _set_timer(self, deadline: float) -> None:
        self._deadline = deadline
        if self._timer is not None:
            if self._timer_at <= deadline:
                return
            self._timer.cancel()
        self._timer_at = deadline
        self._timer = self._loop.call_at(deadline, self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        if self._loop.time() < self._deadline - 0.001:  # it moved on while the timer ran
            self._set_timer(self._deadline)
            return
        self._end(TIMEOUT)
        self.close()
