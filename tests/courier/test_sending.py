"""Well-behaved endpoints: what they get, what comes back, and that connections are used again."""

import asyncio
import socket
import threading
from ipaddress import ip_address, ip_network

import pytest

from tests.courier.endpoints import (
    LOOPBACK_ALLOWED,
    OK,
    Endpoint,
    answering,
    keeping,
    once,
    read_request,
    request,
    silent,
)
from tests.support.ports import ReservedPort
from tests.support.waiting import eventually, wait_until
from tidings.courier import Courier, Guard, dialing
from tidings.courier.resolver import Resolver


def head_and_body(raw: bytes) -> tuple[list[bytes], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), body


async def test_an_endpoint_gets_the_request_and_its_answer_comes_back(courier: Courier) -> None:
    got: list[bytes] = []
    async with Endpoint(keeping(got)) as endpoint:
        result = await courier.send(request(endpoint.url, b'{"\\u0000": 1.0 }', webhook_id="msg_1"))
    assert (result.status, result.error_code, result.excerpt, result.retry_after) == (200, None, b"ok", None)
    assert 0 <= result.duration_ms < 5000
    lines, body = head_and_body(got[0])
    assert body == b'{"\\u0000": 1.0 }'
    assert lines[0] == b"POST /hook HTTP/1.1"
    assert b"host: 127.0.0.1:%d" % endpoint.port in lines
    assert b"accept-encoding: identity" in lines
    assert b"webhook-id: msg_1" in lines


async def test_requests_one_after_another_share_a_connection(courier: Courier) -> None:
    async with Endpoint(answering(OK)) as endpoint:
        for _ in range(20):
            assert (await courier.send(request(endpoint.url))).status == 200
        assert endpoint.connections == 1
        assert courier.open_connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + OK,
        b"HTTP/1.1 500 Oh no\r\ncontent-length: 2\r\n\r\nno",
    ],
)
async def test_a_connection_is_used_again_after_any_whole_response(courier: Courier, answer: bytes) -> None:
    async with Endpoint(answering(*(answer[at : at + 7] for at in range(0, len(answer), 7)))) as endpoint:
        for _ in range(3):
            assert (await courier.send(request(endpoint.url))).status in {200, 204, 500}
        assert endpoint.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ],
)
async def test_a_connection_is_not_used_again_when_the_endpoint_says_so(courier: Courier, answer: bytes) -> None:
    async with Endpoint(answering(answer)) as endpoint:
        for _ in range(3):
            assert (await courier.send(request(endpoint.url))).excerpt == b"ok"
        assert endpoint.connections == 3
        assert courier.open_connections == 0


async def test_a_body_without_length_ends_with_the_connection(courier: Courier) -> None:
    async with Endpoint(once(b"HTTP/1.1 200 OK\r\n\r\n", b"o", b"k")) as endpoint:
        result = await courier.send(request(endpoint.url))
    assert (result.error_code, result.excerpt) == (None, b"ok")


async def test_of_the_body_only_the_beginning_is_kept(courier: Courier) -> None:
    async with Endpoint(once(b"HTTP/1.1 500 No\r\ncontent-length: 9000\r\n\r\n" + b"x" * 9000)) as endpoint:
        result = await courier.send(request(endpoint.url))
    assert result.excerpt == b"x" * 1024


@pytest.mark.parametrize(("header", "seconds"), [(b"17", 17), (b"Thu, 01 Jan 1970 00:00:00 GMT", 0), (b"soon", None)])
async def test_what_the_endpoint_asks_to_wait_is_told(courier: Courier, header: bytes, seconds: int | None) -> None:
    answer = b"HTTP/1.1 429 Too Many\r\nRetry-After: " + header + b"\r\ncontent-length: 0\r\n\r\n"
    async with Endpoint(answering(answer)) as endpoint:
        result = await courier.send(request(endpoint.url))
    assert (result.error_code, result.retry_after) == ("http_429", seconds)


async def test_a_redirect_is_a_failure_and_is_not_followed(courier: Courier) -> None:
    async with Endpoint(answering(OK)) as elsewhere:
        for status in (301, 302, 303, 307, 308):
            moved = f"HTTP/1.1 {status} Moved\r\nlocation: {elsewhere.url}\r\ncontent-length: 0\r\n\r\n"
            async with Endpoint(answering(moved.encode())) as endpoint:
                assert (await courier.send(request(endpoint.url))).error_code == f"http_{status}"
        assert elsewhere.connections == 0


async def test_cookies_and_proxies_of_the_environment_mean_nothing(
    courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    got: list[bytes] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            got.append(await read_request(reader))
            writer.write(b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n")

    async with Endpoint(answering(OK)) as proxy, Endpoint(behave) as endpoint:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        await courier.send(request(endpoint.url))
        await courier.send(request(endpoint.url))
        assert proxy.connections == 0
    assert len(got) == 2
    assert b"cookie" not in got[1].lower()


async def test_an_answer_before_the_whole_request_was_read_counts_and_the_connection_is_closed(
    courier: Courier,
) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await asyncio.Event().wait()

    async with Endpoint(behave) as endpoint:
        result = await courier.send(request(endpoint.url, b"x" * 30_000_000))
        assert (result.error_code, courier.open_connections) == ("http_413", 0)


async def test_a_request_of_a_mebibyte_arrives_whole(courier: Courier) -> None:
    got: list[bytes] = []
    body = bytes(range(256)) * 4096
    async with Endpoint(keeping(got)) as endpoint:
        assert (await courier.send(request(endpoint.url, body))).status == 200
    assert head_and_body(got[0])[1] == body


async def test_a_small_request_is_written_in_one_piece(courier: Courier) -> None:
    pieces: list[bytes] = []

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pieces.append(await reader.read(100_000))
        writer.write(OK)
        await silent(reader, writer)

    async with Endpoint(behave) as endpoint:
        await courier.send(request(endpoint.url, b"y" * 1000))
    assert pieces[0].endswith(b"y" * 1000)


async def test_ipv6_is_called(courier: Courier) -> None:
    async with Endpoint(answering(OK), host="::1") as endpoint:
        assert (await courier.send(request(endpoint.url))).status == 200


async def test_a_name_is_called_at_the_address_that_was_checked_and_named_in_the_host_header() -> None:
    got: list[bytes] = []
    resolver = Resolver(lambda host: [ip_address("127.0.0.1")])
    courier = Courier(Guard(**LOOPBACK_ALLOWED, resolver=resolver))
    async with Endpoint(keeping(got)) as endpoint:
        assert (await courier.send(request(f"http://endpoint.example:{endpoint.port}/"))).status == 200
    await courier.close()
    assert b"host: endpoint.example:%d\r\n" % endpoint.port in got[0]


async def test_when_one_address_does_not_answer_the_next_is_tried_beside_it() -> None:
    """The first one takes no connections: its queue is full, so that the kernel lets the client wait."""
    port = ReservedPort()
    with socket.socket() as full, socket.socket() as filler, socket.socket() as second_filler:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind(("127.0.0.2", port.number))
        full.listen(0)
        for one in (filler, second_filler):
            one.setblocking(False)
            one.connect_ex(("127.0.0.2", port.number))
        resolver = Resolver(lambda host: [ip_address("127.0.0.2"), ip_address("127.0.0.1")])
        courier = Courier(Guard(**LOOPBACK_ALLOWED, resolver=resolver))
        async with Endpoint(answering(OK), port=port.number):
            result = await courier.send(request(f"http://endpoint.example:{port.number}/"))
        await courier.close()
    port.release()
    assert result.status == 200
    assert 200 <= result.duration_ms < 2000


async def test_when_one_address_refuses_the_next_is_tried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "HEAD_START", 60)
    port = ReservedPort()
    resolver = Resolver(lambda host: [ip_address("::1"), ip_address("127.0.0.1")])
    courier = Courier(Guard(**LOOPBACK_ALLOWED, resolver=resolver))
    async with Endpoint(answering(OK), port=port.number):
        result = await courier.send(request(f"http://endpoint.example:{port.number}/"))
    await courier.close()
    port.release()
    assert result.status == 200


async def test_a_connection_that_the_endpoint_closed_meanwhile_is_dialled_anew(courier: Courier) -> None:
    """Nothing was written to it: that is no second try of the request."""
    async with Endpoint(once(OK)) as endpoint:
        for _ in range(10):
            result = await courier.send(request(endpoint.url))
            await eventually(lambda: endpoint.open_connections == 0)
            assert result.status == 200
        assert endpoint.connections == 10


async def test_a_connection_of_whose_end_the_event_loop_has_not_heard_is_dialled_anew(courier: Courier) -> None:
    """The endpoint closes while the loop is held up, and the next request is written before the loop looks around."""
    answered = 0

    def serve(listener: socket.socket) -> None:
        nonlocal answered
        for _ in range(2):
            one, _ = listener.accept()
            with one:
                one.recv(65536)
                one.sendall(OK)
            answered += 1

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        first = await courier.send(request(url))
        wait_until(lambda: answered == 1)
        second = await courier.send(request(url))
        thread.join()
    assert (first.status, second.status, second.error_code) == (200, 200, None)


async def test_a_request_is_never_written_twice(courier: Courier) -> None:
    """The endpoint reads it and closes without an answer: it may have acted on it."""
    count = 0

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        await read_request(reader)
        writer.write(OK)
        await read_request(reader)
        count += 1

    async with Endpoint(behave) as endpoint:
        assert (await courier.send(request(endpoint.url))).status == 200
        result = await courier.send(request(endpoint.url))
    assert (result.error_code, count, endpoint.connections) == ("connection_lost", 1, 1)


async def test_a_cancelled_request_leaves_nothing_behind(courier: Courier) -> None:
    async with Endpoint(silent) as endpoint:
        sending = asyncio.create_task(courier.send(request(endpoint.url)))
        await eventually(lambda: endpoint.open_connections == 1)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert courier.open_connections == 0
        await eventually(lambda: endpoint.open_connections == 0)


async def test_closing_ends_what_is_under_way(courier: Courier) -> None:
    async with Endpoint(silent) as endpoint:
        sending = asyncio.create_task(courier.send(request(endpoint.url)))
        await eventually(lambda: endpoint.open_connections == 1)
        await courier.close()
        assert (await sending).error_code == "connection_lost"
        assert (await courier.send(request(endpoint.url))).error_code == "no_free_connection"
        await eventually(lambda: endpoint.open_connections == 0)


@pytest.mark.parametrize("value", ["ü", "a\r\nb: c", "\x00", "\x7f"])
async def test_a_header_that_cannot_be_sent_fails_the_attempt_and_nothing_is_called(
    courier: Courier, value: str
) -> None:
    async with Endpoint(answering(OK)) as endpoint:
        result = await courier.send(request(endpoint.url, x_secret=value))
        assert (result.error_code, result.status, endpoint.connections) == ("invalid_request", None, 0)


def test_the_networks_of_the_tests_are_narrow() -> None:
    assert LOOPBACK_ALLOWED["allow_networks"] == (ip_network("127.0.0.0/8"), ip_network("::1"))
