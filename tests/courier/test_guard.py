"""No request goes where it has no business: observed by whoever listens there, and by the interpreter itself."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from tests.courier.corpus import ADDRESSES, NEVER, PUBLIC, URLS
from tests.courier.endpoints import LOOPBACK_ALLOWED, OK, Endpoint, answering, request, silent
from tidings.courier import Courier, Guard
from tidings.courier.dialing import new_tls_context
from tidings.courier.error_codes import BLOCKED_ADDRESS, Failed
from tidings.courier.resolver import Resolver
from tidings.decisions.addresses import Address

_connected: list[Any] = []
_watching = False


def _observe(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event == "socket.connect" and arguments[0].family != socket.AF_UNIX:
        _connected.append(arguments[1])


sys.addaudithook(_observe)


@pytest.fixture
def connected() -> Iterator[list[Any]]:
    """Each address to which this process tries to connect meanwhile, with whatever success."""
    global _watching
    _connected.clear()
    _watching = True
    yield _connected
    _watching = False


@pytest.fixture
async def everywhere() -> AsyncIterator[Endpoint]:
    """Listens on every address of this machine."""
    async with Endpoint(silent, host="::") as endpoint:
        yield endpoint


# Made once: reading the authorities of the system takes its time, and no test comes as far as TLS.
TLS = new_tls_context()


def calling_by(guard: Guard) -> Courier:
    return Courier(guard, tls=TLS)


def leading_to(*addresses: str) -> Resolver:
    return Resolver(lambda host: [ip_address(address) for address in addresses])


def soon() -> float:
    return asyncio.get_running_loop().time() + 5


def test_the_corpus_is_large() -> None:
    assert len(set(URLS)) >= 120
    assert len({ip_address(address) for address in ADDRESSES}) >= 60


async def test_no_url_of_the_corpus_is_connected_to(everywhere: Endpoint, connected: list[Any]) -> None:
    """Any port is allowed here, so that it is not the port that saves us; names lead to this machine."""
    courier = calling_by(Guard(allow_ports=range(1, 65_536), resolver=leading_to("127.0.0.1")))
    for url in URLS:
        result = await courier.send(request(url.replace("{port}", str(everywhere.port)), timeout=2))
        assert (result.error_code, result.status) == (BLOCKED_ADDRESS, None), url
    await courier.close()
    assert (connected, everywhere.connections, courier.open_connections) == ([], 0, 0)


@pytest.mark.parametrize("others", [[], ["8.8.8.8"], ["2606:4700::1111", "1.1.1.1"]])
async def test_no_address_of_the_corpus_is_connected_to(
    everywhere: Endpoint, connected: list[Any], others: list[str]
) -> None:
    """Alone, or after honest addresses of the same name."""
    for address in ADDRESSES:
        courier = calling_by(Guard(allow_ports=range(1, 65_536), resolver=leading_to(*others, address)))
        result = await courier.send(request(f"https://endpoint.example:{everywhere.port}/", timeout=2))
        assert result.error_code == BLOCKED_ADDRESS, address
        await courier.close()
    assert (connected, everywhere.connections) == ([], 0)


async def test_the_observers_would_see_a_connection(everywhere: Endpoint, connected: list[Any]) -> None:
    guard = Guard(**LOOPBACK_ALLOWED, allow_ports=range(1, 65_536), resolver=leading_to("127.0.0.1"))
    courier = calling_by(guard)
    await courier.send(request(f"http://endpoint.example:{everywhere.port}/", timeout=0.2))
    await courier.close()
    assert (connected, everywhere.connections) == ([("127.0.0.1", everywhere.port)], 1)


@pytest.mark.parametrize("address", PUBLIC)
async def test_public_addresses_are_allowed(address: str) -> None:
    Guard().judge(ip_address(address), 443)


@pytest.mark.parametrize("address", NEVER)
async def test_no_allow_list_opens_what_is_never_called(
    address: str, everywhere: Endpoint, connected: list[Any]
) -> None:
    guard = Guard(
        allow_networks=(ip_network("0.0.0.0/0"), ip_network("::/0"), ip_network(address)),
        allow_http_hosts=(address, "endpoint.example"),
        allow_ports=range(1, 65_536),
        resolver=leading_to(address),
    )
    courier = calling_by(guard)
    host = f"[{address}]" if ":" in address else address
    for url in (f"http://endpoint.example:{everywhere.port}/", f"http://{host}:{everywhere.port}/"):
        assert (await courier.send(request(url, timeout=2))).error_code == BLOCKED_ADDRESS
    await courier.close()
    assert (connected, everywhere.connections) == ([], 0)


@pytest.mark.parametrize(
    ("allowed", "address", "port", "open_"),
    [
        ("10.1.0.0/16", "10.1.2.3", 8080, True),
        ("10.1.0.0/16", "10.2.0.1", 8080, False),
        ("10.1.0.0/16", "127.0.0.1", 8080, False),
        (("10.1.0.0/16", 8080), "10.1.2.3", 8080, True),
        (("10.1.0.0/16", 8080), "10.1.2.3", 8081, False),
        ("fd00::/8", "fd00::7", 443, True),
        ("fd00::/8", "fc00::7", 443, False),
        ("10.0.0.0/8", "::ffff:10.0.0.1", 443, False),
    ],
)
def test_an_allow_list_opens_what_it_names_and_nothing_else(
    allowed: str | tuple[str, int], address: str, port: int, open_: bool
) -> None:
    entry = (ip_network(allowed[0]), allowed[1]) if isinstance(allowed, tuple) else ip_network(allowed)
    guard = Guard(allow_networks=(entry,))
    if open_:
        guard.judge(ip_address(address), port)
    else:
        with pytest.raises(Failed, match=BLOCKED_ADDRESS):
            guard.judge(ip_address(address), port)


async def test_a_network_that_is_allowed_at_one_port_is_called_there_only(everywhere: Endpoint) -> None:
    at_port = (ip_network("127.0.0.0/8"), everywhere.port)
    courier = calling_by(Guard(allow_networks=(at_port,), allow_http_hosts=("127.0.0.1",)))
    async with Endpoint(answering(OK)) as elsewhere:
        assert (await courier.send(request(elsewhere.url))).error_code == BLOCKED_ADDRESS
        result = await courier.send(request(f"http://127.0.0.1:{everywhere.port}/", timeout=0.1))
        assert (result.error_code, elsewhere.connections, everywhere.connections) == ("timeout", 0, 1)
    await courier.close()


async def test_plain_http_is_for_the_hosts_that_are_listed() -> None:
    courier = calling_by(Guard(allow_networks=LOOPBACK_ALLOWED["allow_networks"], allow_http_hosts=("127.0.0.2",)))
    async with Endpoint(answering(OK)) as endpoint:
        assert (await courier.send(request(endpoint.url))).error_code == BLOCKED_ADDRESS
        assert endpoint.connections == 0
    await courier.close()


async def test_a_listed_name_may_still_not_lead_inside(everywhere: Endpoint) -> None:
    guard = Guard(allow_http_hosts=("endpoint.example",), resolver=leading_to("127.0.0.1"))
    courier = calling_by(guard)
    result = await courier.send(request(f"http://endpoint.example:{everywhere.port}/"))
    assert (result.error_code, everywhere.connections) == (BLOCKED_ADDRESS, 0)
    await courier.close()


async def test_a_name_that_changes_its_mind_is_judged_by_where_it_leads_now() -> None:
    """Rebinding: the answer that is judged is the one that is connected to; there is no second look-up between."""
    answers: list[list[Address]] = [[ip_address("127.0.0.1")], [ip_address("169.254.169.254")]]
    asked = 0

    def look_up(host: str) -> list[Address]:
        nonlocal asked
        asked += 1
        return answers[min(asked, 2) - 1]

    courier = calling_by(Guard(**LOOPBACK_ALLOWED, resolver=Resolver(look_up, cache_seconds=0)))
    close = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    async with Endpoint(answering(close)) as endpoint:
        url = f"http://endpoint.example:{endpoint.port}/"
        assert (await courier.send(request(url))).error_code is None
        assert asked == 1
        assert (await courier.send(request(url))).error_code == BLOCKED_ADDRESS
        assert (asked, endpoint.connections) == (2, 1)
    await courier.close()


@pytest.mark.parametrize("forbidden", ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::", "::1", "localhost"])
@pytest.mark.parametrize("target", ["127.0.0.1", "127.0.0.7", "[::1]", "[::ffff:127.0.0.1]", "endpoint.example"])
async def test_the_database_and_our_own_api_are_never_called(forbidden: str, target: str) -> None:
    """By whatever address of this machine, and although everything is allowed."""
    async with Endpoint(silent, host="::") as own:
        guard = Guard(
            allow_networks=(ip_network("0.0.0.0/0"), ip_network("::/0")),
            allow_http_hosts=("127.0.0.1", "127.0.0.7", "::1", "endpoint.example"),
            forbidden=[(forbidden, own.port)],
            resolver=Resolver(lambda host: [ip_address("::1"), ip_address("127.0.0.1")]),
        )
        courier = calling_by(guard)
        assert (await courier.send(request(f"http://{target}:{own.port}/"))).error_code == BLOCKED_ADDRESS
        assert own.connections == 0
        async with Endpoint(answering(OK)) as neighbour:
            assert (await courier.send(request(neighbour.url))).error_code is None
        await courier.close()


async def test_a_database_on_another_machine_is_known_by_its_name() -> None:
    places = {"db.example": ["10.0.0.9"], "innocent.example": ["10.0.0.9"], "fine.example": ["10.0.0.8"]}
    resolver = Resolver(lambda host: [ip_address(address) for address in places[host]])
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))
    guard = Guard(allow_networks=everything, allow_ports=(5432,), forbidden=[("db.example", 5432)], resolver=resolver)
    with pytest.raises(Failed, match=BLOCKED_ADDRESS):
        await guard.addresses(guard.destination("https://innocent.example:5432/"), soon())
    assert await guard.addresses(guard.destination("https://fine.example:5432/"), soon()) == [ip_address("10.0.0.8")]


async def test_when_it_is_not_known_where_the_database_is_its_port_is_closed() -> None:
    def look_up(host: str) -> list[Address]:
        if host == "db.example":
            raise OSError("no answer")
        return [ip_address("8.8.8.8")]

    guard = Guard(allow_ports=(5432, 443), forbidden=[("db.example", 5432)], resolver=Resolver(look_up))
    with pytest.raises(Failed, match=BLOCKED_ADDRESS):
        await guard.addresses(guard.destination("https://fine.example:5432/"), soon())
    assert await guard.addresses(guard.destination("https://fine.example/"), soon()) == [ip_address("8.8.8.8")]


async def test_a_name_that_cannot_be_looked_up_is_a_dns_error() -> None:
    def look_up(host: str) -> list[Address]:
        raise socket.gaierror(socket.EAI_AGAIN, "try again")

    courier = calling_by(Guard(resolver=Resolver(look_up)))
    result = await courier.send(request("https://endpoint.example/"))
    assert (result.error_code, result.status, courier.open_connections) == ("dns_error", None, 0)
    await courier.close()
