"""Endpoints that mean ill, or are broken: each attempt ends in time, with the right code, and leaves nothing open."""

import asyncio
import gzip
import itertools
import os
import resource
import socket
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from inspect import iscoroutine
from pathlib import Path
from random import Random

import psutil
import pytest

import tidings.courier
from tests.courier.endpoints import (
    OK,
    SHORT,
    SHORT_ENDS_MS,
    Behaviour,
    Endpoint,
    answering,
    once,
    read_request,
    request,
    silent,
)
from tests.courier.responses import TABLE, Outcome, spoiled
from tests.support.ports import ReservedPort
from tests.support.waiting import eventually, pause
from tidings.courier import Courier
from tidings.courier.error_codes import SITUATIONS

pytestmark = pytest.mark.slow

OURS = str(Path(tidings.courier.__file__).parent)


def dripping(data: bytes, before: bytes = b"", every: float = 0.02) -> Behaviour:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(before)
        for byte in itertools.cycle(data):
            writer.write(bytes([byte]))
            await writer.drain()
            await pause(every)

    return behave


def flooding(data: bytes, before: bytes = b"") -> Behaviour:
    """As fast as it can, for ever."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(before)
        while True:
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(0)

    return behave


def resetting(after: bytes = b"", read: bool = True) -> Behaviour:
    """Closes so that the client gets a reset, not an end."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if read:
            await read_request(reader)
        writer.write(after)
        await writer.drain()
        await pause(0.02)
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    return behave


HEAD = b"HTTP/1.1 200 OK\r\n"
BEHAVIOURS: dict[str, tuple[Behaviour, int | None, str | None]] = {
    "never answers": (silent, None, "timeout"),
    "drips the status line": (dripping(b"x", before=b"HTTP/1.1 200 "), 200, "timeout"),
    "drips headers": (dripping(b"x: y\r\n", before=HEAD), 200, "timeout"),
    "drips one endless header": (dripping(b"x", before=HEAD + b"x: "), 200, "timeout"),
    "drips a body": (dripping(b"x", before=HEAD + b"content-length: 1000000\r\n\r\n"), 200, "timeout"),
    "drips chunks": (dripping(b"1\r\nx\r\n", before=HEAD + b"transfer-encoding: chunked\r\n\r\n"), 200, "timeout"),
    "drips a body of an error": (dripping(b"x", before=b"HTTP/1.1 500 No\r\n\r\n"), 500, "timeout"),
    "drips line breaks": (dripping(b"\r\n"), None, "timeout"),
    "drips interim responses": (dripping(b"HTTP/1.1 103 Hints\r\n\r\n", every=0.001), None, "timeout"),
    "stops within the headers": (answering(HEAD + b"x: y\r\n", then=silent), 200, "timeout"),
    "stops within the body": (answering(HEAD + b"content-length: 9\r\n\r\nx", then=silent), 200, "timeout"),
    "floods with interim responses": (flooding(b"HTTP/1.1 103 Hints\r\n\r\n" * 50), None, "protocol_error"),
    "floods with headers": (flooding(b"x: y\r\n" * 100, before=HEAD), 200, "protocol_error"),
    "floods with one header": (flooding(b"x" * 5000, before=HEAD + b"x: "), 200, "protocol_error"),
    "floods with line breaks": (flooding(b"\r\n" * 500), None, "protocol_error"),
    "floods with NUL": (flooding(b"\0" * 5000), None, "protocol_error"),
    "sends 10,000 headers": (once(HEAD + b"x: yyyy\r\n" * 10_000 + b"\r\n"), 200, None),
    "sends an endless body": (flooding(b"x" * 65536, before=HEAD + b"\r\n"), 200, None),
    "sends 100 MB": (flooding(b"x" * 65536, before=HEAD + b"content-length: 100000000\r\n\r\n"), 200, None),
    "sends endless chunks": (
        flooding(b"5000\r\n" + b"x" * 0x5000 + b"\r\n", before=HEAD + b"transfer-encoding: chunked\r\n\r\n"),
        200,
        None,
    ),
    "sends an endless error": (flooding(b"x" * 65536, before=b"HTTP/1.1 503 No\r\n\r\n"), 503, "http_503"),
    "sends endless trailers": (
        flooding(b"x: y\r\n" * 500, before=HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n"),
        200,
        None,
    ),
    "closes without an answer": (once(), None, "connection_lost"),
    "closes within the status line": (once(b"HTTP/1.1 200 O"), 200, "connection_lost"),
    "closes within the headers": (once(HEAD + b"content-le"), 200, "connection_lost"),
    "closes within the body": (once(HEAD + b"content-length: 9\r\n\r\nx"), 200, None),
    "closes within the body of an error": (once(b"HTTP/1.1 502 No\r\ncontent-length: 9\r\n\r\nx"), 502, "http_502"),
    "resets at once": (resetting(read=False), None, "connection_lost"),
    "resets without an answer": (resetting(), None, "connection_lost"),
    "resets within the status line": (resetting(b"HTTP/1.1 200 O"), 200, "connection_lost"),
    "resets within the headers": (resetting(HEAD + b"x: y\r\n"), 200, "connection_lost"),
    "resets within the body": (resetting(HEAD + b"content-length: 9\r\n\r\nx"), 200, None),
}


@pytest.fixture(autouse=True)
async def nothing_stays_open() -> AsyncIterator[None]:
    yield
    running = [task.get_coro() for task in asyncio.all_tasks()]
    assert [one for one in running if iscoroutine(one) and one.cr_code.co_filename.startswith(OURS)] == []


@pytest.mark.parametrize(("behave", "status", "code"), BEHAVIOURS.values(), ids=BEHAVIOURS.keys())
async def test_an_endpoint_gets_its_code_in_time_and_nothing_stays_open_whatever_it_does(
    courier: Courier, behave: Behaviour, status: int | None, code: str | None
) -> None:
    async with Endpoint(behave) as endpoint:
        result = await courier.send(request(endpoint.url, timeout=SHORT if code == "timeout" else 5))
        assert (result.status, result.error_code) == (status, code)
        assert result.duration_ms < SHORT_ENDS_MS
        assert len(result.excerpt) <= 1024
        assert courier.open_connections == 0
        await eventually(lambda: endpoint.open_connections == 0)
        assert endpoint.connections == 1


@pytest.mark.parametrize(("answer", "expected"), TABLE.values(), ids=TABLE.keys())
async def test_answers_of_the_table_come_to_the_same_over_a_socket(
    courier: Courier, answer: bytes, expected: Outcome
) -> None:
    async with Endpoint(once(answer)) as endpoint:
        result = await courier.send(request(endpoint.url))
        assert result[:3] == expected[:3]
        await eventually(lambda: courier.open_connections == 0)


async def test_a_bomb_of_gzip_is_left_as_it_is(courier: Courier) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    async with Endpoint(answering(head + bomb)) as endpoint:
        result = await courier.send(request(endpoint.url))
    assert (result.error_code, result.excerpt) == (None, bomb[:1024])


async def test_more_than_was_asked_for_ends_the_connection(courier: Courier) -> None:
    """Otherwise it would be taken for the answer to the next request."""
    forged = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"
    async with Endpoint(answering(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n" + forged)) as endpoint:
        for _ in range(3):
            assert (await courier.send(request(endpoint.url))).error_code == "http_500"
        assert endpoint.connections == 3


async def test_more_that_comes_later_ends_the_connection_too(courier: Courier) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
        await pause(0.05)
        writer.write(OK)
        await silent(reader, writer)

    async with Endpoint(behave) as endpoint:
        assert (await courier.send(request(endpoint.url))).error_code == "http_500"
        await eventually(lambda: courier.open_connections == 0)
        assert (await courier.send(request(endpoint.url))).error_code == "http_500"
        assert endpoint.connections == 2


@pytest.mark.parametrize("words", [b"", OK, b"220 mail.example ESMTP\r\n"])
async def test_an_endpoint_that_closes_or_speaks_before_it_was_asked_gets_a_code_too(
    courier: Courier, words: bytes
) -> None:
    """Which one is a matter of whether the request was written before."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        await writer.drain()

    async with Endpoint(behave) as endpoint:
        result = await courier.send(request(endpoint.url, timeout=SHORT))
        await eventually(lambda: courier.open_connections == 0)
    assert result.error_code in {None, "connect_error", "connection_lost", "protocol_error"}


async def test_where_nobody_listens_it_is_a_connect_error_at_once(courier: Courier) -> None:
    port = ReservedPort()
    result = await courier.send(request(f"http://127.0.0.1:{port.number}/"))
    port.release()
    assert (result.error_code, result.status) == ("connect_error", None)
    assert courier.open_connections == 0


async def test_where_nobody_accepts_it_is_a_connect_error_at_the_deadline(courier: Courier) -> None:
    """The kernel lets the client wait, as if packets were lost."""
    with socket.socket() as full, socket.socket() as filler, socket.socket() as second_filler:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for one in (filler, second_filler):
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        result = await courier.send(request(f"http://127.0.0.1:{full.getsockname()[1]}/", timeout=SHORT))
    assert result.error_code == "connect_error"
    assert result.duration_ms < SHORT_ENDS_MS


async def test_an_endpoint_that_reads_nothing_is_given_up_at_the_deadline(courier: Courier) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with Endpoint(behave) as endpoint:
        result = await courier.send(request(endpoint.url, b"x" * 50_000_000, timeout=SHORT))
    assert (result.error_code, courier.open_connections) == ("timeout", 0)


def open_files() -> list[int]:
    return [int(name) for name in os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")]


async def test_without_file_descriptors_attempts_fail_and_go_on_afterwards(courier: Courier) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with Endpoint(answering(OK)) as endpoint:
        highest = max(open_files())
        held = [os.dup(0) for _ in range(5)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(highest, soft), hard))
        try:
            with suppress(OSError):
                while True:
                    held.append(os.dup(0))
            assert (await courier.send(request(endpoint.url))).error_code == "connect_error"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for number in held:
                os.close(number)
        assert (await courier.send(request(endpoint.url))).status == 200


@pytest.mark.parametrize("seed", range(2))
async def test_spoiled_responses_over_sockets_end_in_time_and_leave_nothing_open(courier: Courier, seed: int) -> None:
    """What the reader makes of bytes alone, the connection makes of them when they come in pieces and end somehow."""
    chance = Random(seed)

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        data = spoiled(chance)
        cut = chance.randrange(len(data) + 1)
        writer.write(data[:cut])
        await writer.drain()
        writer.write(data[cut:])
        await writer.drain()
        if chance.random() < 0.2:
            await silent(reader, writer)

    async with Endpoint(behave) as endpoint:
        for _ in range(10):
            sending = [courier.send(request(endpoint.url, timeout=0.3)) for _ in range(40)]
            for result in await asyncio.gather(*sending):
                assert result.error_code is None or result.error_code in SITUATIONS or result.status
                assert result.duration_ms < 3000
        assert (await courier.send(request(endpoint.url, timeout=0.3))).duration_ms < 3000


async def test_200_hostile_responses_at_once_need_little_memory(courier: Courier) -> None:
    process = psutil.Process()
    async with Endpoint(flooding(b"x" * 65536, before=HEAD + b"\r\n")) as endpoint:
        before = process.memory_info().rss
        results = await asyncio.gather(*[courier.send(request(endpoint.url)) for _ in range(200)])
        grown = process.memory_info().rss - before
    assert {result.error_code for result in results} == {None}
    assert grown < 200 * 1024 * 1024, "each endless body may take a piece, and no more"
    assert courier.open_connections == 0


async def test_a_parade_of_ill_behaviour_leaks_no_file_descriptor(courier: Courier) -> None:
    async def parade() -> None:
        for behave, _, code in BEHAVIOURS.values():
            async with Endpoint(behave) as endpoint:
                await courier.send(request(endpoint.url, timeout=0.05 if code == "timeout" else 2))

    await parade()
    before = len(open_files())
    await parade()
    await eventually(lambda: courier.open_connections == 0)
    await eventually(lambda: len(open_files()) <= before)
