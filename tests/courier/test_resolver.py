"""Looking up names: each once at a time, in time, and nobody waits for somebody else's name server."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections import Counter
from ipaddress import ip_address

import pytest

from tests.support.waiting import eventually
from tidings.courier.error_codes import Failed
from tidings.courier.resolver import MOST_ADDRESSES, Resolver, look_up
from tidings.decisions.addresses import Address

HERE = [ip_address("127.0.0.1")]


class NameServer:
    """Answers at once, fails, or hangs until it is told to go on, by the name that is asked for."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.go_on = threading.Event()

    def __call__(self, host: str) -> list[Address]:
        self.asked[host] += 1
        if host.startswith("hanging"):
            self.go_on.wait(20)
        if host.startswith("unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        if host.startswith("odd"):
            raise RuntimeError("can't start new thread")
        return HERE if not host.startswith("empty") else []


def soon(seconds: float = 5) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_an_answer_is_kept_for_a_while() -> None:
    server = NameServer()
    resolver = Resolver(server)
    for _ in range(3):
        assert await resolver.addresses("a.example", soon()) == HERE
    assert server.asked["a.example"] == 1
    forgetful = Resolver(server, cache_seconds=0.05)

    async def asked_again() -> bool:
        await forgetful.addresses("b.example", soon())
        return server.asked["b.example"] == 2

    await eventually(asked_again)


async def test_a_name_is_looked_up_once_however_many_ask() -> None:
    server = NameServer()
    resolver = Resolver(server)
    asking = [asyncio.create_task(resolver.addresses("hanging.example", soon())) for _ in range(50)]
    await eventually(lambda: server.asked["hanging.example"] == 1)
    server.go_on.set()
    assert await asyncio.gather(*asking) == [HERE] * 50
    assert server.asked["hanging.example"] == 1


@pytest.mark.parametrize("name", ["unknown.example", "odd.example", "empty.example"])
async def test_a_name_without_addresses_is_a_dns_error(name: str) -> None:
    with pytest.raises(Failed, match="dns_error"):
        await Resolver(NameServer()).addresses(name, soon())


async def test_a_name_with_too_many_addresses_is_a_dns_error() -> None:
    many = [ip_address(0x0A000000 + number) for number in range(MOST_ADDRESSES + 1)]
    with pytest.raises(Failed, match="dns_error"):
        await Resolver(lambda host: many).addresses("a.example", soon())


@pytest.mark.parametrize(("seconds", "deadline"), [(0.2, 60), (60, 0.2)])
async def test_a_name_server_that_hangs_is_waited_for_only_so_long(seconds: float, deadline: float) -> None:
    server = NameServer()
    resolver = Resolver(server, seconds=seconds)
    began = asyncio.get_running_loop().time()
    with pytest.raises(Failed, match="dns_error"):
        await resolver.addresses("hanging.example", soon(deadline))
    assert asyncio.get_running_loop().time() - began < 10
    server.go_on.set()
    await resolver.close()


async def test_names_that_hang_do_not_hold_up_others() -> None:
    server = NameServer()
    resolver = Resolver(server, seconds=0.3, threads=8)
    for number in range(3):
        stuck = [resolver.addresses(f"hanging{one}.example", soon()) for one in range(7)]
        failures = await asyncio.gather(*stuck, return_exceptions=True)
        assert {type(failure) for failure in failures} == {Failed}
        assert await resolver.addresses(f"a{number}.example", soon()) == HERE
    assert max(server.asked.values()) == 1, "a name that hangs holds one thread, however often it is asked for"
    server.go_on.set()
    await resolver.close()


async def test_there_are_never_more_threads_than_allowed() -> None:
    server = NameServer()
    resolver = Resolver(server, seconds=0.3, threads=4)
    stuck = [resolver.addresses(f"hanging{number}.example", soon()) for number in range(30)]
    await asyncio.gather(*stuck, return_exceptions=True)
    assert sum(server.asked.values()) == 4
    server.go_on.set()
    await resolver.close()


async def test_one_who_stops_asking_does_not_stop_the_others() -> None:
    server = NameServer()
    resolver = Resolver(server)
    first, second = (asyncio.create_task(resolver.addresses("hanging.example", soon())) for _ in range(2))
    await eventually(lambda: server.asked["hanging.example"] == 1)
    first.cancel()
    server.go_on.set()
    assert await second == HERE


async def test_the_systems_own_names_are_found() -> None:
    assert ip_address("127.0.0.1") in look_up("localhost")


def test_a_look_up_that_hangs_does_not_keep_the_process_from_ending() -> None:
    code = """
import asyncio, time
from tidings.courier.error_codes import Failed
from tidings.courier.resolver import Resolver
async def main():
    try:
        await Resolver(lambda host: time.sleep(60)).addresses("a.example", asyncio.get_running_loop().time() + 0.1)
    except Failed as failure:
        print(failure.code)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert ended.stdout == "dns_error\n"
