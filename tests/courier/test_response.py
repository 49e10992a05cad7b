"""What bytes of an endpoint come to: a table, the same in any pieces, and a million spoiled ones."""

import time
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.courier.responses import MAX_READ, TABLE, Outcome, read, read_next, spoiled
from tidings.courier.error_codes import PROTOCOL_ERROR, SITUATIONS, TIMEOUT
from tidings.courier.response import MAX_HEAD, ResponseReader

# What follows a complete response: who reads byte by byte has stopped before it, and would use the connection again.
BEHIND = {
    TABLE[kind][0] for kind in ("one more response", "half a response more", "junk behind it", "length too short")
}
KINDS = pytest.mark.parametrize(("data", "expected"), TABLE.values(), ids=TABLE.keys())


@KINDS
def test_a_response_comes_to_what_the_table_says(data: bytes, expected: Outcome) -> None:
    assert read(data) == expected


@KINDS
def test_it_comes_to_the_same_byte_by_byte(data: bytes, expected: Outcome) -> None:
    found = read(*(data[at : at + 1] for at in range(len(data))))
    assert found[:3] == expected[:3]
    assert found.reusable == (expected.reusable or data in BEHIND)


@given(st.sampled_from([*TABLE]), st.lists(st.integers(0, 400), max_size=6))
def test_it_comes_to_the_same_in_any_pieces(kind: str, cuts: list[int]) -> None:
    data, expected = TABLE[kind]
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    found = read(*(data[start:end] for start, end in pairwise(places) if start < end))
    assert found[:3] == expected[:3]


def test_at_the_deadline_an_answer_that_is_not_complete_is_none() -> None:
    reader = ResponseReader(MAX_READ, 1024)
    reader.feed(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nha")
    assert (reader.error_code(TIMEOUT), reader.status, reader.excerpt) == (TIMEOUT, 200, b"ha")


@pytest.mark.parametrize("piece", [1, 100, 5000, 10**7])
@pytest.mark.parametrize(
    ("opening", "filling", "status", "code"),
    [
        (b"HTTP/1.1 200 ", b"x", 200, PROTOCOL_ERROR),
        (b"HTTP/1.1 200 OK\r\nx: ", b"x", 200, PROTOCOL_ERROR),
        (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n", 200, PROTOCOL_ERROR),
        (b"", b"\r\n", None, PROTOCOL_ERROR),
        (b"", b"HTTP/1.1 102 P\r\n\r\n", None, PROTOCOL_ERROR),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x", 200, None),
        (b"HTTP/1.1 500 No\r\n\r\n", b"x", 500, "http_500"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n", b"x", 200, None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n", 200, None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;", b"x", 200, None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: ", b"x", 200, None),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n", b"x: y\r\n", 200, None),
    ],
)
def test_what_never_ends_is_ended(
    opening: bytes, filling: bytes, status: int | None, code: str | None, piece: int
) -> None:
    """At most a piece more than the limit is read, and of the body only its beginning is kept."""
    reader = ResponseReader(MAX_READ, 1024)
    endless = opening + filling * (200_000 // len(filling) + 1)
    count = 0
    while not reader.feed(endless[count : count + piece]):
        count += piece
        assert count < len(endless), "it would read for ever"
    assert count <= (MAX_READ if reader.answered else MAX_HEAD)
    assert (reader.status, reader.error_code(PROTOCOL_ERROR)) == (status, code)
    assert len(reader.excerpt) <= 1024
    assert not (reader.complete and reader.keep_alive)


def test_a_reader_reads_one_response_after_another() -> None:
    reader = ResponseReader(MAX_READ, 1024)
    for kind in ("length", "chunked", "503", "100 first", "204", "chunked with trailers", "301", "length"):
        data, expected = TABLE[kind]
        assert read_next(reader, data) == expected
        assert reader.retry_after == (b"7" if kind == "503" else None)


@given(st.binary(max_size=500))
def test_any_bytes_come_to_an_outcome(data: bytes) -> None:
    check(read(data))


@given(st.binary(max_size=200), st.sampled_from([*TABLE]), st.integers(0, 300))
def test_any_bytes_within_a_response_come_to_an_outcome(junk: bytes, kind: str, at: int) -> None:
    data, _ = TABLE[kind]
    check(read(data[:at], junk, data[at:]))


def test_20_000_spoiled_responses_come_to_outcomes() -> None:
    feed_spoiled(20_000, seed=1)


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_million_spoiled_responses_come_to_outcomes() -> None:
    feed_spoiled(1_000_000, seed=int(time.time()))


def feed_spoiled(count: int, seed: int) -> None:
    chance = Random(seed)
    for number in range(count):
        data = spoiled(chance)
        cut = chance.randrange(len(data) + 1)
        try:
            check(read(data) if number % 2 else read(data[:cut], data[cut:]))
        except Exception as error:
            raise AssertionError(f"seed {seed}, input {number}: {data!r}") from error


def check(outcome: Outcome) -> None:
    """What holds for any outcome."""
    status, code, excerpt, reusable = outcome
    assert code is None or code in SITUATIONS or code == f"http_{status:03d}"
    assert code is not None or (status is not None and 200 <= status < 300)
    assert len(excerpt) <= 1024
    assert not reusable or (code is None or code.startswith("http_"))
