"""TLS is verified for the name of the URL, on the address that was checked, and never weakened."""

import asyncio
import datetime
import socket
import ssl
import threading
from contextlib import suppress
from ipaddress import ip_address

import pytest
import trustme

from tests.courier.endpoints import (
    LOOPBACK_ALLOWED,
    OK,
    SHORT,
    SHORT_ENDS_MS,
    Endpoint,
    answering,
    once,
    request,
    silent,
)
from tests.support.waiting import eventually, pause
from tidings.courier import Courier, Guard
from tidings.courier.dialing import new_tls_context
from tidings.courier.resolver import Resolver


def serving(authority: trustme.CA, *names: str, ends: datetime.datetime | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, not_after=ends).configure_cert(context)
    return context


async def test_https_by_address_is_verified_for_the_address(courier: Courier, authority: trustme.CA) -> None:
    async with Endpoint(answering(OK), tls=serving(authority, "127.0.0.1")) as endpoint:
        for _ in range(3):
            assert (await courier.send(request(endpoint.url))).error_code is None
        assert endpoint.connections == 1


async def test_https_by_name_is_verified_for_the_name_and_names_it(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """The address comes from the guard, the name from the URL."""
    asked: list[str | None] = []
    context = serving(authority, "endpoint.example")
    context.sni_callback = lambda _, name, __: asked.append(name)
    guard = Guard(**LOOPBACK_ALLOWED, resolver=Resolver(lambda host: [ip_address("127.0.0.1")]))
    courier = Courier(guard, tls=trusting)
    async with Endpoint(answering(OK), tls=context) as endpoint:
        at = endpoint.port
        assert (await courier.send(request(f"https://endpoint.example:{at}/"))).error_code is None
        assert (await courier.send(request(f"https://other.example:{at}/"))).error_code == "tls_error"
    await courier.close()
    assert asked == ["endpoint.example", "other.example"]


@pytest.mark.parametrize("name", ["elsewhere.example", "*.0.0.1", "127.0.0.2"])
async def test_a_certificate_for_somebody_else_is_refused(courier: Courier, authority: trustme.CA, name: str) -> None:
    async with Endpoint(answering(OK), tls=serving(authority, name)) as endpoint:
        result = await courier.send(request(endpoint.url))
    assert (result.error_code, result.status, courier.open_connections) == ("tls_error", None, 0)


async def test_a_certificate_of_an_unknown_authority_is_refused(courier: Courier) -> None:
    async with Endpoint(answering(OK), tls=serving(trustme.CA(), "127.0.0.1")) as endpoint:
        assert (await courier.send(request(endpoint.url))).error_code == "tls_error"


async def test_an_expired_certificate_is_refused(courier: Courier, authority: trustme.CA) -> None:
    yesterday = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    async with Endpoint(answering(OK), tls=serving(authority, "127.0.0.1", ends=yesterday)) as endpoint:
        assert (await courier.send(request(endpoint.url))).error_code == "tls_error"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_an_old_version_of_tls_is_refused(
    courier: Courier, authority: trustme.CA, version: ssl.TLSVersion
) -> None:
    context = serving(authority, "127.0.0.1")
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    async with Endpoint(answering(OK), tls=context) as endpoint:
        assert (await courier.send(request(endpoint.url))).error_code == "tls_error"


async def test_tls_1_2_is_accepted(courier: Courier, authority: trustme.CA) -> None:
    context = serving(authority, "127.0.0.1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with Endpoint(answering(OK), tls=context) as endpoint:
        assert (await courier.send(request(endpoint.url))).error_code is None


def test_by_default_certificates_and_names_are_checked_and_old_versions_refused() -> None:
    context = new_tls_context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize(
    "says", [b"", b"\x16\x03\x03", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 100, b"\x15\x03\x01\x00\x02\x02\x28"]
)
@pytest.mark.parametrize("then", ["closes", "is silent"])
async def test_what_does_not_speak_tls_fails_in_time(courier: Courier, says: bytes, then: str) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(says)
        await writer.drain()
        if then == "is silent":
            await silent(reader, writer)

    async with Endpoint(behave) as endpoint:
        result = await courier.send(request(endpoint.url.replace("http:", "https:"), timeout=SHORT))
        assert (result.error_code, courier.open_connections) == ("tls_error", 0)
        assert result.duration_ms < SHORT_ENDS_MS
        await eventually(lambda: endpoint.open_connections == 0)


async def test_a_handshake_that_drips_fails_in_time(courier: Courier) -> None:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x16\x03\x03\x40\x00")
        while True:
            writer.write(b"\x02")
            await writer.drain()
            await pause(0.02)

    async with Endpoint(behave) as endpoint:
        result = await courier.send(request(endpoint.url.replace("http:", "https:"), timeout=SHORT))
        assert result.error_code == "tls_error"
        assert result.duration_ms < SHORT_ENDS_MS
        await eventually(lambda: endpoint.open_connections == 0)


async def test_an_endpoint_that_demands_a_certificate_of_ours_is_a_tls_error(
    courier: Courier, authority: trustme.CA
) -> None:
    """Since TLS 1.3 that comes out only after the handshake, when the request is already written."""
    context = serving(authority, "127.0.0.1")
    context.verify_mode = ssl.CERT_REQUIRED
    authority.configure_trust(context)

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        secured = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        with suppress(ssl.SSLError):
            secured.do_handshake()
        with socket.socket(fileno=secured.detach()) as raw, suppress(OSError):
            while raw.recv(65536):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        result = await courier.send(request(f"https://127.0.0.1:{listener.getsockname()[1]}/"))
        thread.join()
    assert result.error_code == "tls_error"


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (b"", None, "connection_lost"),
        (b"HTTP/1.1 200 OK\r\nx", 200, "connection_lost"),
        (b"HTTP/1.1 200 OK\r\n\r\nok", 200, None),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", 200, None),
        (b"junk", None, "protocol_error"),
    ],
)
async def test_within_tls_answers_come_to_the_same(
    courier: Courier, authority: trustme.CA, answer: bytes, status: int | None, code: str | None
) -> None:
    async with Endpoint(once(answer), tls=serving(authority, "127.0.0.1")) as endpoint:
        result = await courier.send(request(endpoint.url))
        assert (result.status, result.error_code) == (status, code)
        await eventually(lambda: courier.open_connections == 0)


async def test_within_tls_the_deadline_and_the_cap_hold(courier: Courier, authority: trustme.CA) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    context = serving(authority, "127.0.0.1")
    async with Endpoint(flood, tls=context) as endless, Endpoint(silent, tls=context) as dumb:
        assert (await courier.send(request(endless.url))).error_code is None
        assert (await courier.send(request(dumb.url, timeout=SHORT))).error_code == "timeout"
        assert courier.open_connections == 0
        await eventually(lambda: endless.open_connections + dumb.open_connections == 0)
