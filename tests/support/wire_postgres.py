"""Finds named statements in the PostgreSQL protocol, version 3.

The text travels once, in Parse; afterwards Bind and Execute only refer to it. An exchange lasts until the
ReadyForQuery that answers its Sync or Query; drivers may send the next before they read the answer.
"""

from collections import deque
from collections.abc import Iterator

from tests.support.wire import Answer, Exchange, Request, Unreadable, statement_name, take

CANCEL, SSL, GSS = 80877102, 80877103, 80877104
QUERY, PARSE, BIND, EXECUTE, SYNC = b"Q", b"P", b"B", b"E", b"S"
OUTSIDE_EXCHANGES = (b"p", b"X")  # password and goodbye
READY_FOR_QUERY = b"Z"


class PostgresConversation:
    """One connection: its prepared statements, its portals, and the exchanges that are under way."""

    def __init__(self) -> None:
        self._from_client = bytearray()
        self._from_server = bytearray()
        self._started = False
        self._negotiating = False
        self._statements: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}
        self._under_way: deque[Exchange] = deque()
        self._open: Exchange | None = None

    def requests(self, received: bytes) -> Iterator[Request]:
        self._from_client += received
        while message := take(self._from_client, self._request_length()):
            yield self._read_typed(message) if self._started else self._read_opening(message)

    def answers(self, received: bytes) -> Iterator[Answer]:
        self._from_server += received
        if self._negotiating and (verdict := take(self._from_server, 1)):
            self._negotiating = False
            if verdict != b"N":
                raise Unreadable(f"PostgreSQL answered {verdict!r} to the wish for encryption")
            yield Answer(verdict)
        while message := take(self._from_server, _typed_length(self._from_server)):
            yield self._read_answer(message)

    def _request_length(self) -> int | None:
        if self._started:
            return _typed_length(self._from_client)
        return _int4(self._from_client, 0) if len(self._from_client) >= 4 else None

    def _read_opening(self, message: bytes) -> Request:
        code = _int4(message, 4)
        if code in (SSL, GSS):
            self._negotiating = True
        elif code != CANCEL:
            self._started = True
            self._under_way.append(Exchange())  # the login ends with a ReadyForQuery of its own
        return Request(message)

    def _read_typed(self, message: bytes) -> Request:
        kind = message[:1]
        if kind in OUTSIDE_EXCHANGES:
            return Request(message)
        exchange = self._current_exchange()
        if kind in (QUERY, SYNC):
            self._open = None
        return self._read_statement(kind, message, exchange)

    def _current_exchange(self) -> Exchange:
        if self._open is None:
            self._open = Exchange()
            self._under_way.append(self._open)
        return self._open

    def _read_statement(self, kind: bytes, message: bytes, exchange: Exchange) -> Request:
        body = message[5:]
        if kind == QUERY:
            name = statement_name(body)
            return Request(message, exchange, text_of=name, executes=name)
        if kind == PARSE:
            handle, text = _strings(body)
            self._statements[handle] = statement_name(text)
            return Request(message, exchange, text_of=self._statements[handle])
        if kind == BIND:
            portal, handle = _strings(body)
            self._portals[portal] = self._statements.get(handle, "")
        if kind == EXECUTE:
            portal, _, _ = body.partition(b"\0")
            return Request(message, exchange, executes=self._portals.get(portal, ""))
        return Request(message, exchange)

    def _read_answer(self, message: bytes) -> Answer:
        if not self._under_way:
            return Answer(message)
        if message[:1] == READY_FOR_QUERY:
            return Answer(message, self._under_way.popleft(), ends=True)
        return Answer(message, self._under_way[0])


def _typed_length(buffer: bytearray) -> int | None:
    return 1 + _int4(buffer, 1) if len(buffer) >= 5 else None


def _int4(data: bytes | bytearray, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "big")


def _strings(body: bytes) -> tuple[bytes, bytes]:
    first, second, _ = body.split(b"\0", 2)
    return first, second
