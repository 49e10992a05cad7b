"""Finds named statements in the MySQL protocol, as MySQL and MariaDB speak it.

A command is one packet (or more, from 16 MiB on) that starts the sequence numbers anew; the next one is sent
after the whole answer to the last. Statements travel as text, or prepared once and executed by their number.
"""

from collections.abc import Iterator

from tests.support.wire import Answer, Exchange, Request, Unreadable, statement_name, take
from tests.support.wire_mysql_reply import Reply

QUERY, PREPARE, EXECUTE, BULK_EXECUTE = 0x03, 0x16, 0x17, 0xFA
CLIENT_MYSQL, CLIENT_COMPRESS, CLIENT_SSL, CLIENT_DEPRECATE_EOF = 1, 1 << 5, 1 << 11, 1 << 24
MARIADB_PROGRESS, MARIADB_CACHE_METADATA = 1 << 0, 1 << 4
LONGEST_PACKET = 0xFFFFFF


class MySQLConversation:
    """One connection: what both sides agreed on, its prepared statements, and the exchange under way."""

    def __init__(self) -> None:
        self._from_client = bytearray()
        self._from_server = bytearray()
        self._offered: int | None = None
        self._agreed: int | None = None
        self._statements: dict[int, str] = {}
        self._preparing: str | None = None
        self._exchange: Exchange | None = None
        self._reply: Reply | None = None
        self._continues = False

    def requests(self, received: bytes) -> Iterator[Request]:
        self._from_client += received
        while packet := take(self._from_client, _packet_length(self._from_client)):
            yield self._read_request(packet)

    def answers(self, received: bytes) -> Iterator[Answer]:
        self._from_server += received
        while packet := take(self._from_server, _packet_length(self._from_server)):
            yield self._read_answer(packet)

    def _read_request(self, packet: bytes) -> Request:
        sequence, payload = packet[3], packet[4:]
        if self._agreed is None:
            self._agreed = self._agree(payload)
        if sequence != 0:
            return Request(packet)  # a part of the login, or the rest of a long command
        self._exchange = Exchange()
        self._preparing, self._reply = None, None
        return self._read_command(packet, payload, self._exchange)

    def _read_command(self, packet: bytes, payload: bytes, exchange: Exchange) -> Request:
        command, body = payload[0], payload[1:]
        if command == PREPARE:
            self._preparing = statement_name(body)
            return Request(packet, exchange, text_of=self._preparing)
        if command not in (QUERY, EXECUTE, BULK_EXECUTE):
            return Request(packet, exchange)
        self._reply = Reply(deprecate_eof=bool((self._agreed or 0) & CLIENT_DEPRECATE_EOF))
        if command == QUERY:
            name = statement_name(body)
            return Request(packet, exchange, text_of=name, executes=name)
        return Request(packet, exchange, executes=self._statements.get(_int(body[:4]), ""))

    def _read_answer(self, packet: bytes) -> Answer:
        payload, is_rest = packet[4:], self._continues
        self._continues = len(payload) == LONGEST_PACKET
        if self._offered is None:
            self._offered = _offer(payload)
        if self._preparing is not None and payload[:1] == b"\0":
            self._statements[_int(payload[1:5])] = self._preparing
        self._preparing = None
        exchange = self._exchange
        if is_rest or self._reply is None or not self._reply.ends_with(payload):
            return Answer(packet, exchange)
        self._exchange, self._reply = None, None
        return Answer(packet, exchange, ends=True)

    def _agree(self, login: bytes) -> int:
        wanted = _int(login[:4]) & (self._offered or 0)
        extended = 0 if _int(login[:4]) & CLIENT_MYSQL else _int(login[28:32])
        if wanted & (CLIENT_SSL | CLIENT_COMPRESS) or extended & (MARIADB_PROGRESS | MARIADB_CACHE_METADATA):
            raise Unreadable(f"the client wants {wanted:#x} and {extended:#x}, which the proxy cannot follow")
        return wanted


def _offer(greeting: bytes) -> int:
    """The capabilities of the server: two halves after its version, the connection's number and the salt."""
    at = greeting.find(b"\0") + 1 + 4 + 8 + 1
    return _int(greeting[at : at + 2] + greeting[at + 5 : at + 7])


def _packet_length(buffer: bytearray) -> int | None:
    return 4 + _int(buffer[:3]) if len(buffer) >= 4 else None


def _int(data: bytes | bytearray) -> int:
    return int.from_bytes(data, "little")
