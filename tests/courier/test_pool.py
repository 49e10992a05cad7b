"""How many connections there may be, who gets the next one, and when idle ones end."""

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from tests.courier.endpoints import LOOPBACK_ALLOWED, OK, Behaviour, Endpoint, answering, read_request, request
from tests.support.ports import ReservedPort
from tests.support.waiting import eventually
from tidings.courier import Courier, Guard, Result
from tidings.courier.pool import Pool


class Gate:
    """An endpoint that answers when it is told to."""

    def __init__(self) -> None:
        self.waiting = 0
        self._turns = asyncio.Semaphore(0)

    def open(self, times: int = 1) -> None:
        for _ in range(times):
            self._turns.release()

    @property
    def behave(self) -> Behaviour:
        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                await read_request(reader)
                self.waiting += 1
                await self._turns.acquire()
                self.waiting -= 1
                writer.write(OK)

        return behave


def start(courier: Courier, endpoint: Endpoint, timeout: float = 5) -> asyncio.Task[Result]:
    return asyncio.create_task(courier.send(request(endpoint.url, timeout=timeout)))


def new_courier(**limits: Any) -> Courier:
    return Courier(Guard(**LOOPBACK_ALLOWED), **limits)


async def test_a_host_gets_no_more_connections_than_it_may_and_all_requests_are_sent() -> None:
    courier = new_courier(per_host=3)
    async with Endpoint(answering(OK)) as endpoint:
        results = await asyncio.gather(*[courier.send(request(endpoint.url)) for _ in range(50)])
        assert {result.error_code for result in results} == {None}
        assert endpoint.connections == 3
    await courier.close()


async def test_who_waits_longer_than_the_deadline_gets_a_code_of_its_own() -> None:
    courier = new_courier(per_host=1)
    gate = Gate()
    async with Endpoint(gate.behave) as endpoint:
        first = start(courier, endpoint)
        await eventually(lambda: gate.waiting == 1)
        assert (await start(courier, endpoint, timeout=0.1)).error_code == "no_free_connection"
        gate.open(2)
        assert (await first).error_code is None
        assert (await start(courier, endpoint)).error_code is None
        assert endpoint.connections == 1
    await courier.close()


async def test_those_who_wait_are_served_in_turn() -> None:
    courier = new_courier(per_host=1)
    gate = Gate()
    order: list[int] = []
    async with Endpoint(gate.behave) as endpoint:

        async def send(number: int) -> None:
            await courier.send(request(endpoint.url))
            order.append(number)

        tasks = [asyncio.create_task(send(number)) for number in range(10)]
        gate.open(10)
        await asyncio.gather(*tasks)
    assert order == [*range(10)]
    await courier.close()


async def test_one_hanging_host_does_not_hold_up_others() -> None:
    courier = new_courier(connections=10, per_host=4)
    gate = Gate()
    async with Endpoint(gate.behave) as hanging, Endpoint(answering(OK)) as healthy:
        stuck = [start(courier, hanging, timeout=60) for _ in range(20)]
        await eventually(lambda: gate.waiting == 4)
        results = await asyncio.gather(*[courier.send(request(healthy.url, timeout=20)) for _ in range(100)])
        assert {result.error_code for result in results} == {None}
        gate.open(20)
        await asyncio.gather(*stuck)
    await courier.close()


async def test_when_there_is_no_room_in_all_the_connection_that_was_idle_for_longest_makes_room() -> None:
    courier = new_courier(connections=3)
    async with AsyncExitStack() as stack:
        endpoints = [await stack.enter_async_context(Endpoint(answering(OK))) for _ in range(4)]
        for endpoint in endpoints:
            assert (await courier.send(request(endpoint.url))).error_code is None
        assert courier.open_connections == 3
        await eventually(lambda: [one.open_connections for one in endpoints] == [0, 1, 1, 1])
        await courier.close()


async def test_when_there_is_no_room_in_all_hosts_take_turns() -> None:
    """A host that is always busy does not keep its connections for ever."""
    courier = new_courier(connections=2, per_host=2)
    gate = Gate()
    async with Endpoint(gate.behave) as busy, Endpoint(answering(OK)) as other:
        many = [start(courier, busy) for _ in range(20)]
        await eventually(lambda: gate.waiting == 2)
        late = start(courier, other)
        await asyncio.sleep(0)
        gate.open(3)
        assert (await late).error_code is None
        gate.open(20)
        assert {result.error_code for result in await asyncio.gather(*many)} == {None}
    await courier.close()


async def test_an_idle_connection_ends_after_its_time() -> None:
    courier = new_courier(idle_seconds=0.1)
    async with Endpoint(answering(OK)) as endpoint:
        await courier.send(request(endpoint.url))
        assert courier.open_connections == 1
        await eventually(lambda: courier.open_connections == 0 and endpoint.open_connections == 0)
    await courier.close()


async def test_a_busy_connection_is_not_ended_by_an_old_deadline() -> None:
    """Its timer was set for an earlier request and is moved on when it fires."""
    courier = new_courier(per_host=1)
    gate = Gate()
    async with Endpoint(gate.behave) as endpoint:
        gate.open()
        assert (await start(courier, endpoint, timeout=0.5)).error_code is None
        second = start(courier, endpoint, timeout=10)
        await asyncio.wait([second], timeout=0.7)
        assert not second.done()
        gate.open()
        assert (await second).error_code is None
        assert endpoint.connections == 1
    await courier.close()


async def test_a_shorter_deadline_than_the_one_before_holds() -> None:
    courier = new_courier(per_host=1)
    gate = Gate()
    async with Endpoint(gate.behave) as endpoint:
        gate.open()
        assert (await start(courier, endpoint, timeout=60)).error_code is None
        result = await start(courier, endpoint, timeout=0.1)
        assert (result.error_code, endpoint.connections) == ("timeout", 1)
        assert result.duration_ms < 10_000
    await courier.close()


async def test_who_stops_waiting_leaves_its_turn_to_the_next() -> None:
    courier = new_courier(per_host=1)
    gate = Gate()
    async with Endpoint(gate.behave) as endpoint:
        first, second, third = (start(courier, endpoint) for _ in range(3))
        await eventually(lambda: gate.waiting == 1)
        second.cancel()
        gate.open(2)
        assert (await first).error_code is None
        assert (await third).error_code is None
        with pytest.raises(asyncio.CancelledError):
            await second
        assert courier.open_connections == 1
    await courier.close()


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_is_cancelled_and_when_no_place_is_lost(seed: int) -> None:
    """Many requests through few connections, some of them given up at any moment."""
    chance = Random(seed)
    courier = new_courier(connections=5, per_host=2)
    async with AsyncExitStack() as stack:
        endpoints = [await stack.enter_async_context(Endpoint(answering(OK))) for _ in range(4)]
        tasks = [start(courier, chance.choice(endpoints), chance.choice((0.01, 2, 5))) for _ in range(300)]
        while not all(task.done() for task in tasks):
            chance.choice(tasks).cancel()
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)
        for endpoint in endpoints:
            results = await asyncio.gather(*[start(courier, endpoint, 30) for _ in range(5)])
            assert {result.error_code for result in results} == {None}
        assert courier.open_connections <= 5
    await courier.close()
    assert courier.open_connections == 0


async def wait_for_place(pool: Pool) -> asyncio.Task[object]:
    """Somebody who waits, as all places are taken."""
    task = asyncio.create_task(pool.place("a", asyncio.get_running_loop().time() + 5))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def test_a_place_that_comes_at_the_moment_of_giving_up_goes_to_the_next() -> None:
    pool = Pool(10, 1, 30)
    await pool.place("a", 0)
    first, second = await wait_for_place(pool), await wait_for_place(pool)
    pool.give_back("a")
    first.cancel()
    assert await second is None
    assert pool.places_taken == 1
    pool.give_back("a")
    assert pool.places_taken == 0


async def test_who_gave_up_a_moment_before_is_passed_over() -> None:
    pool = Pool(10, 1, 30)
    await pool.place("a", 0)
    first, second = await wait_for_place(pool), await wait_for_place(pool)
    first.cancel()
    pool.give_back("a")
    assert await second is None
    pool.give_back("a")
    assert pool.places_taken == 0


async def test_when_a_call_fails_the_next_in_line_has_its_turn() -> None:
    courier = new_courier(per_host=1)
    port = ReservedPort()
    url = f"http://127.0.0.1:{port.number}/"
    results = await asyncio.gather(*[courier.send(request(url, timeout=3)) for _ in range(20)])
    port.release()
    await courier.close()
    assert {result.error_code for result in results} == {"connect_error"}
