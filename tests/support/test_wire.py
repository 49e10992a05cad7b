"""The wire protocols, message by message: what the drivers in use do not send, but others may."""

import struct

import pytest

from tests.support.wire import Unreadable, statement_name
from tests.support.wire_mysql import CLIENT_DEPRECATE_EOF, CLIENT_SSL, MySQLConversation
from tests.support.wire_mysql_reply import Reply
from tests.support.wire_postgres import PostgresConversation

STARTUP = struct.pack("!II", 8, 196608)
READY = b"Z\0\0\0\x05I"
END, END_BUT_MORE = b"\xfe\0\0\x02\0", b"\xfe\0\0\x0a\0"
OK, OK_BUT_MORE = b"\0\0\0\x02\0\0\0", b"\0\xfc\x10\x27\0\x0a\0\0\0"
OK_OF_ROWS = b"\xfe\0\0\x02\0\0\0"
COLUMN, ROW = b"\x03def", b"\x01x"


def typed(kind: str, body: bytes) -> bytes:
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def packet(payload: bytes, sequence: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([sequence]) + payload


def started_postgres() -> PostgresConversation:
    conversation = PostgresConversation()
    list(conversation.requests(STARTUP))
    list(conversation.answers(READY))
    return conversation


def logged_in_mysql(capabilities: int = 0) -> MySQLConversation:
    conversation = MySQLConversation()
    low, high = (capabilities | 1).to_bytes(4, "little")[:2], capabilities.to_bytes(4, "little")[2:]
    list(conversation.answers(packet(b"\x0a10.11\0" + bytes(13) + low + bytes(3) + high)))
    list(conversation.requests(packet((capabilities | 1).to_bytes(4, "little") + bytes(28), 1)))
    list(conversation.answers(packet(OK, 2)))
    return conversation


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"/* router.begin */ BEGIN", "router.begin"),
        (b"\n/*router.begin*/BEGIN", "router.begin"),
        (b"SELECT 1 /* router.begin */", ""),
        (b"/* two words */ SELECT 1", ""),
        (b"", ""),
    ],
)
def test_the_name_is_in_the_comment_that_a_statement_starts_with(text: bytes, name: str) -> None:
    assert statement_name(text) == name


def test_messages_are_found_whatever_the_pieces_they_arrive_in() -> None:
    conversation = started_postgres()
    stream = typed("Q", b"/* a.b */ SELECT 1\0") + typed("Q", b"/* a.c */ SELECT 2\0")
    found = [request for byte in stream for request in conversation.requests(bytes([byte]))]
    assert [request.executes for request in found] == ["a.b", "a.c"]
    assert b"".join(request.data for request in found) == stream


def test_postgresql_answers_belong_to_their_own_exchange_when_requests_run_ahead() -> None:
    conversation = started_postgres()
    first, second = conversation.requests(typed("Q", b"/* a.b */ x\0") + typed("Q", b"/* a.c */ y\0"))
    one, two = conversation.answers(READY + READY)
    assert (one.exchange, two.exchange) == (first.exchange, second.exchange)
    assert one.ends
    assert two.ends


def test_a_postgresql_statement_is_executed_by_execute_and_not_by_parse_or_bind() -> None:
    conversation = started_postgres()
    parse = typed("P", b"s1\0/* a.b */ SELECT 1\0\0\0")
    bind, execute = typed("B", b"p1\0s1\0\0\0"), typed("E", b"p1\0\0\0\0\0")
    requests = list(conversation.requests(parse + typed("S", b"") + bind + execute + typed("S", b"")))
    assert [request.executes for request in requests] == ["", "", "", "a.b", ""]
    assert [request.text_of for request in requests] == ["a.b", None, None, None, None]
    assert requests[0].exchange is not requests[2].exchange
    assert requests[2].exchange is requests[3].exchange is requests[4].exchange


def test_encryption_would_hide_the_statements_and_is_reported() -> None:
    postgres = PostgresConversation()
    list(postgres.requests(struct.pack("!II", 8, 80877103)))
    with pytest.raises(Unreadable):
        list(postgres.answers(b"S"))
    with pytest.raises(Unreadable):
        logged_in_mysql(CLIENT_SSL)


def test_postgresql_may_decline_encryption_and_go_on() -> None:
    conversation = PostgresConversation()
    list(conversation.requests(struct.pack("!II", 8, 80877103)))
    assert [answer.data for answer in conversation.answers(b"N")] == [b"N"]
    list(conversation.requests(STARTUP))
    assert [answer.ends for answer in conversation.answers(READY)] == [True]


@pytest.mark.parametrize(
    ("deprecate_eof", "answer"),
    [
        (False, [OK]),
        (False, [b"\xff\x28\x04no"]),
        (False, [b"\x02", COLUMN, COLUMN, END, ROW, ROW, END]),
        (False, [b"\x01", COLUMN, END, END]),
        (False, [b"\x01", COLUMN, END, ROW, b"\xff\x28\x04no"]),
        (False, [b"\x01", COLUMN, END, b"\xfe" + bytes(8) + b"a long value", END]),
        (False, [b"\x01", COLUMN, END, ROW, END_BUT_MORE, b"\x01", COLUMN, END, ROW, END_BUT_MORE, OK]),
        (False, [OK_BUT_MORE, OK_BUT_MORE, OK]),
        (True, [b"\x01", COLUMN, ROW, ROW, OK_OF_ROWS]),
        (True, [b"\xfc\x2c\x01", *[COLUMN] * 300, ROW, OK_OF_ROWS]),
        (True, [b"\x01", COLUMN, b"\0\0\x01x", OK_OF_ROWS]),
    ],
)
def test_a_mysql_answer_ends_with_its_last_packet_and_not_before(deprecate_eof: bool, answer: list[bytes]) -> None:
    reply = Reply(deprecate_eof)
    assert [reply.ends_with(payload) for payload in answer] == [False] * (len(answer) - 1) + [True]


def test_a_mysql_value_that_fills_its_packet_goes_on_in_the_next() -> None:
    conversation = logged_in_mysql(CLIENT_DEPRECATE_EOF)
    long_text = b"\x03/* a.b */ " + b"x" * 0xFFFFFF
    requests = list(conversation.requests(packet(long_text[:0xFFFFFF]) + packet(long_text[0xFFFFFF:], 1)))
    assert [request.executes for request in requests] == ["a.b", ""]
    rows = [b"\x01", COLUMN, b"\xfd" + bytes(0xFFFFFE), OK_OF_ROWS, OK_OF_ROWS]
    answers = list(conversation.answers(b"".join(map(packet, rows))))
    assert [answer.ends for answer in answers] == [False, False, False, False, True]


def test_a_mysql_statement_that_could_not_be_prepared_has_no_name_to_execute() -> None:
    conversation = logged_in_mysql()
    list(conversation.requests(packet(b"\x16/* a.b */ SELEC 1")))
    list(conversation.answers(packet(b"\xff\x28\x04no", 1)))
    (request,) = conversation.requests(packet(b"\x17\x07\0\0\0\0\1\0\0\0"))
    assert request.executes == ""
