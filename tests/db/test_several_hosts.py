"""A URL may name a primary and its standbys: the one that takes writes is found, at first and whenever that changes."""

import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.ports import LOOPBACK, ReservedPort
from tidings.db.engine import Engine, open_engine
from tidings.db.statements import Statement
from tidings.errors import ServerUnreachable, TransientFailure

READ_ONLY = "SET GLOBAL read_only = {}"
WRITE = Statement("test.write", "UPDATE config_version SET version = version + 1", ())


@pytest.fixture
def nobody() -> Iterator[str]:
    """A place where nobody listens."""
    port = ReservedPort()
    yield f"{LOOPBACK}:{port.number}"
    port.release()


def with_hosts(url: str, *hosts: str) -> str:
    """The hosts of this URL, after these."""
    account, _, rest = url.rpartition("@")
    place, _, path = rest.partition("/")
    return f"{account}@{','.join([*hosts, place])}/{path}"


@pytest.fixture
async def demoted(throwaway: Database) -> AsyncIterator[Database]:
    """Its server takes no writes from its roles, as a primary that was put back into the second row."""
    admin = await throwaway.open("admin", schema="")
    login = throwaway.names.login("schema_owner")
    texts = {
        "postgresql": f'ALTER ROLE "{login}" SET default_transaction_read_only = {{}}',
        "mysql": READ_ONLY,
    }
    async with admin.bare_session() as session:
        await session.command(texts[throwaway.family].format(1))
        yield throwaway
        await session.command(texts[throwaway.family].format(0))


async def opened(database: Database, url: str) -> Engine:
    engine = await open_engine(url, owner="schema_owner", names=database.names, patience=0.1)
    database._opened.append(engine)
    return engine


async def test_a_host_that_is_not_there_is_passed_over(engine: Database, nobody: str) -> None:
    found = await opened(engine, with_hosts(engine.url("schema_owner"), nobody))
    assert await found.step(lambda transaction: transaction.run(WRITE)) == 1


async def test_a_server_that_takes_no_writes_is_not_the_one_that_is_meant(demoted: Database, nobody: str) -> None:
    with pytest.raises(ServerUnreachable, match="takes no writes") as error:
        await opened(demoted, with_hosts(demoted.url("schema_owner"), nobody))
    assert "can't be reached" in error.value.what
    assert nobody in error.value.remedy


async def test_a_session_of_a_primary_that_was_demoted_is_not_used_again(throwaway: Database) -> None:
    """A switchover closes no connections: without this a role would ask the old one for ever."""
    engine = await opened(throwaway, throwaway.url("schema_owner"))
    admin = await throwaway.open("admin", schema="")
    demoted = {"postgresql": (engine, "SET default_transaction_read_only = on"), "mysql": (admin, READ_ONLY.format(1))}
    speaker, text = demoted[throwaway.family]
    async with speaker.bare_session() as session:
        await session.command(text)
    try:
        with pytest.raises(TransientFailure, match="read-only"):
            async with engine.transaction() as transaction:
                await transaction.run(WRITE)
    finally:
        if throwaway.family == "mysql":
            async with admin.bare_session() as session:
                await session.command(READ_ONLY.format(0))
    before = engine.connections
    assert await engine.step(lambda transaction: transaction.run(WRITE)) == 1
    assert engine.connections == before + 1


async def test_a_peer_that_says_nothing_any_more_will_be_noticed(engine: Database) -> None:
    """What the system does by these settings is tried with real hosts, in tests/machines/test_hosts.py."""
    opened = await engine.open("observer")
    async with opened.bare_session() as session:
        # No driver shows its socket by a name of its own.
        driver: Any = vars(session)["_connection"]
        connected = driver._transport.get_extra_info("socket")
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, between, times = (
            connected.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT")
        )
        assert idle + between * times <= 20
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 20_000
