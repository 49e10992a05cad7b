"""Responses of all kinds, what each comes to, and a way to spoil them."""

from random import Random
from typing import NamedTuple

from tidings.courier.error_codes import CONNECTION_LOST, PROTOCOL_ERROR
from tidings.courier.response import ResponseReader

MAX_READ = 64 * 1024


class Outcome(NamedTuple):
    status: int | None
    error_code: str | None
    excerpt: bytes
    reusable: bool


def read(*pieces: bytes) -> Outcome:
    """What the pieces come to, if the connection is closed after them."""
    return read_next(ResponseReader(MAX_READ, 1024), *pieces)


def read_next(reader: ResponseReader, *pieces: bytes) -> Outcome:
    reader.begin()
    ended = False
    for piece in pieces:
        ended = reader.feed(piece)
        if ended:
            break
    error = reader.error_code(PROTOCOL_ERROR if ended else CONNECTION_LOST)
    return Outcome(reader.status, error, reader.excerpt, reader.complete and reader.keep_alive)


def good(status: int = 200, body: bytes = b"ok", reusable: bool = True) -> Outcome:
    return Outcome(status, None if 200 <= status < 300 else f"http_{status}", body, reusable)


def broken(status: int | None = None, body: bytes = b"") -> Outcome:
    return Outcome(status, PROTOCOL_ERROR, body, False)


def lost(status: int | None = None) -> Outcome:
    return Outcome(status, CONNECTION_LOST, b"", False)


HEAD = b"HTTP/1.1 200 OK\r\n"
LENGTH = b"content-length: 2\r\n\r\nok"
CHUNKED = b"transfer-encoding: chunked\r\n\r\n"

# What is sent, and what it comes to.
TABLE: dict[str, tuple[bytes, Outcome]] = {
    "length": (HEAD + LENGTH, good()),
    "length 0": (HEAD + b"content-length: 0\r\n\r\n", good(body=b"")),
    "no reason": (b"HTTP/1.1 200\r\n" + LENGTH, good()),
    "no reason, but its space": (b"HTTP/1.1 200 \r\n" + LENGTH, good()),
    "reason of 8 KiB": (b"HTTP/1.1 200 " + b"x" * 8192 + b"\r\n" + LENGTH, good()),
    "reason with high bytes": (b"HTTP/1.1 200 \xfc\xff\r\n" + LENGTH, good()),
    "chunked": (HEAD + CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n", good()),
    "chunked with extensions": (HEAD + CHUNKED + b"2;a=b\r\nok\r\n0;c\r\n\r\n", good()),
    "chunked with trailers": (HEAD + CHUNKED + b"2\r\nok\r\n0\r\nx: y\r\nretry-after: 9\r\n\r\n", good()),
    "until the end": (HEAD + b"\r\nok", good(reusable=False)),
    "close": (HEAD + b"connection: close\r\n" + LENGTH, good(reusable=False)),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\n" + LENGTH, good(reusable=False)),
    "HTTP/1.0 keep-alive": (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" + LENGTH, good()),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", good(204, b"")),
    "204 with a length": (b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", good(204, b"")),
    "299": (b"HTTP/1.1 299 Odd\r\n" + LENGTH, good(299)),
    "301": (b"HTTP/1.1 301 Moved\r\nlocation: http://169.254.169.254/\r\n" + LENGTH, good(301)),
    "304": (b"HTTP/1.1 304 Not Modified\r\n\r\n", good(304, b"")),
    "400": (b"HTTP/1.1 400 Bad\r\n" + LENGTH, good(400)),
    "503": (b"HTTP/1.1 503 Busy\r\nretry-after: 7\r\n" + LENGTH, good(503)),
    "600": (b"HTTP/1.1 600 Odd\r\n" + LENGTH, good(600)),
    "999": (b"HTTP/1.1 999 Odd\r\n" + LENGTH, good(999)),
    "100 first": (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + LENGTH, good()),
    "103 with headers first": (
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\nretry-after: 5\r\n\r\n" + HEAD + LENGTH,
        good(),
    ),
    "three interim ones": (b"HTTP/1.1 102 P\r\n\r\n" * 3 + HEAD + LENGTH, good()),
    "only interim ones": (b"HTTP/1.1 102 P\r\n\r\n" * 3, lost()),
    "offers another protocol": (HEAD + b"upgrade: h2c\r\nconnection: upgrade\r\n" + LENGTH, good()),
    "switches protocols": (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", broken(101)),
    "switches without saying to what": (b"HTTP/1.1 101 Switching\r\n\r\n", broken(101)),
    "000": (b"HTTP/1.1 000 Odd\r\n" + LENGTH, broken()),
    "099": (b"HTTP/1.1 099 Odd\r\n" + LENGTH, broken(99)),
    "nothing": (b"", lost()),
    "only a line break": (b"\r\n", lost()),
    "half a version": (b"HTT", lost()),
    "half a status": (b"HTTP/1.1 20", lost()),
    "a status without its end": (b"HTTP/1.1 200", lost()),
    "half a reason": (b"HTTP/1.1 200 O", lost(200)),
    "half a header": (HEAD + b"content-le", lost(200)),
    "no end of headers": (HEAD + b"content-length: 2\r\n", lost(200)),
    "four digits": (b"HTTP/1.1 2000 OK\r\n" + LENGTH, broken()),
    "two digits": (b"HTTP/1.1 20 OK\r\n" + LENGTH, broken()),
    "no digits": (b"HTTP/1.1 OK\r\n" + LENGTH, broken()),
    "another version": (b"HTTP/7.3 200 OK\r\n" + LENGTH, broken()),
    "HTML": (b"<html>hello</html>", broken()),
    "TLS": (b"\x15\x03\x01\x00\x02\x02\x50", broken()),
    "HTTP/2": (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", broken()),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", broken()),
    "NUL": (b"\0" * 16, broken()),
    "NUL in a header": (HEAD + b"x: a\0b\r\n" + LENGTH, broken(200)),
    "bare line feeds": (b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok", broken(200)),
    "a header without a colon": (HEAD + b"hello\r\n" + LENGTH, broken(200)),
    "a space before the colon": (HEAD + b"x : y\r\n" + LENGTH, broken(200)),
    "high bytes in a value": (HEAD + b"x: \xff\xfe\r\n" + LENGTH, good()),
    "two lengths": (HEAD + b"content-length: 3\r\n" + LENGTH, broken(200)),
    "the same length twice": (HEAD + b"content-length: 2\r\n" + LENGTH, broken(200)),
    "length and chunked": (HEAD + b"content-length: 2\r\n" + CHUNKED + b"2\r\nok\r\n0\r\n\r\n", broken(200)),
    "chunked and length": (HEAD + b"transfer-encoding: chunked\r\n" + LENGTH, broken(200)),
    "negative length": (HEAD + b"content-length: -2\r\n\r\nok", broken(200)),
    "length with a plus": (HEAD + b"content-length: +2\r\n\r\nok", broken(200)),
    "length in words": (HEAD + b"content-length: two\r\n\r\nok", broken(200)),
    "length of 100 digits": (HEAD + b"content-length: " + b"9" * 100 + b"\r\n\r\nok", broken(200)),
    "length too long": (HEAD + b"content-length: 100\r\n\r\nok", good(reusable=False)),
    "length too short": (HEAD + b"content-length: 1\r\n\r\nok", good(body=b"o", reusable=False)),
    "chunk without digits": (HEAD + CHUNKED + b"zz\r\nok\r\n", good(body=b"", reusable=False)),
    "chunk too large": (HEAD + CHUNKED + b"f" * 20 + b"\r\nok", good(body=b"", reusable=False)),
    "negative chunk": (HEAD + CHUNKED + b"-1\r\nok\r\n", good(body=b"", reusable=False)),
    "chunk without its end": (HEAD + CHUNKED + b"2\r\nokok\r\n0\r\n\r\n", good(reusable=False)),
    "no last chunk": (HEAD + CHUNKED + b"2\r\nok\r\n", good(reusable=False)),
    "500 and then nonsense": (b"HTTP/1.1 500 No\r\n" + CHUNKED + b"zz", good(500, b"", reusable=False)),
    "compressed": (
        HEAD + b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\0",
        good(body=b"\x1f\x8b\x08\0"),
    ),
    "one more response": (HEAD + LENGTH + b"HTTP/1.1 500 No\r\n" + LENGTH, good(reusable=False)),
    "half a response more": (HEAD + LENGTH + b"HTT", good(reusable=False)),
    "junk behind it": (HEAD + LENGTH + b"junk", good(reusable=False)),
    "a line break behind it": (HEAD + LENGTH + b"\r\n", good()),
}


def spoiled(chance: Random) -> bytes:
    """A response of the table, or two, with some bytes changed, left out, doubled or put in."""
    data = bytearray(chance.choice(_SEEDS))
    for _ in range(chance.choice((1, 1, 2, 3, 8))):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at : at + chance.randrange(1, 9)]
            case 2:
                data[at:at] = data[at : at + chance.randrange(1, 33)]
            case 3:
                data[at:at] = chance.choice(_TOKENS)
            case 4:
                data[at:] = chance.choice(_SEEDS)
            case 5:
                data[at : at + 1] = bytes([chance.choice(b"\r\n\0 :;,0-fF\x7f\xff")])
    return bytes(data)


_SEEDS = [data for data, _ in TABLE.values() if data]
_TOKENS = [
    *(b"\r\n", b"\n", b"\r", b"\0", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 100 C\r\n\r\n", b"0\r\n\r\n", b"ffffffff\r\n"),
    *(b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b"connection: close\r\n", b"retry-after: 1\r\n"),
    *(b"x" * 300, b"\xff" * 30, b": ", b"upgrade: h2c\r\n", b"HTTP/1.1 101 S\r\n\r\n", b"9" * 30),
]
