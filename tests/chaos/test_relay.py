"""The relay passes bytes on, cuts, and stands still: for those who are there and for those who come meanwhile."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.chaos.attendants import Attendant

pytestmark = pytest.mark.slow

# So long that it has not ended by itself when a busy machine has looked for as long as a glance.
FREEZE, GLANCE = 3.0, 0.3


@pytest.fixture
async def target() -> AsyncIterator[int]:
    """Says everything back."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.fixture
async def relay(target: int) -> AsyncIterator[Attendant]:
    started = await Attendant("tests.chaos.relay", f"database={target}").start()
    yield started
    await started.stop()


class Client:
    """One connection by way of the relay."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def of(cls, port: int) -> "Client":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def says(self, data: bytes, timeout: float) -> bytes:
        self._writer.write(data)
        return await asyncio.wait_for(self._reader.read(100), timeout)

    def close(self) -> None:
        self._writer.close()


async def test_while_it_is_frozen_nothing_passes_of_the_old_nor_of_the_new(relay: Attendant) -> None:
    port = int((await relay.next_line())[1])
    old = await Client.of(port)
    assert await old.says(b"one", 10) == b"one"
    relay.tell(f"freeze database {FREEZE}")
    assert await relay.next_line() == ["frozen", "database", "1"]
    new = await Client.of(port)
    with pytest.raises(TimeoutError):
        await asyncio.gather(old.says(b"two", GLANCE), new.says(b"three", GLANCE))
    assert await old.says(b"", 10) == b"two"
    assert await new.says(b"", 10) == b"three"
    old.close()
    new.close()


async def test_a_commit_arrives_and_its_answer_does_not(relay: Attendant) -> None:
    port = int((await relay.next_line())[1])
    client = await Client.of(port)
    relay.tell("cut-commit database")
    assert await client.says(b"INSERT", 10) == b"INSERT"
    try:
        answer = await client.says(b"/* x */ COMMIT", 10)
    except ConnectionResetError:
        answer = b""
    assert answer == b""
    assert await relay.next_line() == ["commit", "cut", "database"]
    client.close()
