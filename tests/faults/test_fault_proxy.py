"""The fault proxy on real servers with the real drivers: it strikes where it is told, and nowhere else."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.fault_proxy import CUT, FREEZE, KILL, REWRITE, Fault, FaultProxy, When
from tests.support.processes import Process, Start
from tests.support.server_process import ServerProcess
from tests.support.servers import SERVERS, each_server
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
INSERT = "/* clerk.insert */ INSERT INTO ledger (id) VALUES ({})"
LONG_INSERT = "/* clerk.insert */ INSERT INTO ledger (id, note) VALUES ({}, '{}')"
LOST = r"(?i)lost|closed|reset|gone away"
CLAIM = "/* clerk.claim */ SELECT id FROM ledger WHERE id = 1 FOR UPDATE SKIP LOCKED"

server = pytest.fixture(each_server, scope="module", params=SERVERS, ids=lambda kind: kind.engine)


@pytest.fixture
async def url(server: ServerProcess) -> str:
    """A database with an empty ledger, straight on the server."""
    if server.engine == "postgresql":
        url, schema, drop, text = server.admin_url, "public", "DROP SCHEMA public CASCADE", "text"
    else:
        url, schema, drop, text = f"{server.admin_url}shop", "shop", "DROP SCHEMA IF EXISTS shop", "longtext"
    async with connected(server.admin_url) as session:
        await session.run(drop)
        await session.run(f"CREATE SCHEMA {schema}")
        await session.run(f"CREATE TABLE {schema}.ledger (id int PRIMARY KEY, note {text})")
    return url


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[FaultProxy]:
    with FaultProxy(server.port, server.engine) as proxy:
        yield proxy


@pytest.fixture
def many_rows(server: ServerProcess) -> str:
    rows = {"postgresql": "generate_series(1, 100000)", "mariadb": "seq_1_to_100000"}[server.engine]
    return f"/* clerk.read */ SELECT * FROM {rows}"


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Session]:
    session = await connect(url)
    try:
        yield session
    finally:
        await session.close()


async def ids(url: str) -> list[int]:
    async with connected(url) as session:
        return [row[0] for row in await session.run("SELECT id FROM ledger ORDER BY id")]


async def test_what_passes_is_seen_by_name_and_in_order(url: str, proxy: FaultProxy) -> None:
    async with connected(proxy.url(url)) as session:
        for statement in (
            "/* clerk.begin */ BEGIN",
            INSERT.format(1),
            "SELECT 1",
            "/* clerk.commit */ COMMIT",
        ):
            await session.run(statement)
    assert proxy.seen == ["clerk.begin", "clerk.insert", "clerk.commit"]
    assert await ids(url) == [1]


@pytest.mark.parametrize(("when", "kept"), [("before", []), ("after", [1])])
async def test_a_cut_at_an_insert(url: str, proxy: FaultProxy, when: When, kept: list[int]) -> None:
    fault = Fault(statement="clerk.insert", when=when, action=CUT)
    proxy.arm(fault)
    async with connected(proxy.url(url)) as session:
        with pytest.raises(Exception, match=LOST):
            await session.run(INSERT.format(1))
    await proxy.until_fired()
    assert await ids(url) == kept
    assert proxy.fired == [fault]


@pytest.mark.parametrize(("when", "kept"), [("before", []), ("after", [1])])
async def test_a_cut_at_the_commit_leaves_the_client_in_doubt(
    url: str, proxy: FaultProxy, when: When, kept: list[int]
) -> None:
    proxy.arm(Fault(statement="clerk.commit", when=when, action=CUT))
    async with connected(proxy.url(url)) as session:
        await session.run("/* clerk.begin */ BEGIN")
        await session.run(INSERT.format(1))
        with pytest.raises(Exception, match=LOST):
            await session.run("/* clerk.commit */ COMMIT")
    assert await ids(url) == kept


@pytest.mark.parametrize(("when", "kept"), [("before", [1, 2]), ("after", [1, 2, 3])])
async def test_a_fault_waits_for_the_nth_time_and_strikes_once(
    url: str, proxy: FaultProxy, when: When, kept: list[int]
) -> None:
    proxy.arm(Fault(statement="clerk.insert", when=when, action=CUT, nth=3))
    async with connected(proxy.url(url)) as session:
        await session.run(INSERT.format(1))
        await session.run(INSERT.format(2))
        with pytest.raises(Exception, match=LOST):
            await session.run(INSERT.format(3))
    assert await ids(url) == kept
    async with connected(proxy.url(url)) as session:
        await session.run(INSERT.format(4))
    assert await ids(url) == [*kept, 4]


async def test_an_error_is_an_answer_too(url: str, proxy: FaultProxy) -> None:
    proxy.arm(Fault(statement="clerk.insert", when="after", action=CUT, nth=3))
    async with connected(proxy.url(url)) as session:
        await session.run(INSERT.format(1))
        with pytest.raises(Exception, match=r"(?i)duplicate"):
            await session.run(INSERT.format(1))
        with pytest.raises(Exception, match=LOST):
            await session.run(INSERT.format(1))
    await proxy.until_fired()


async def test_a_prepared_statement_is_recognised_every_time_it_is_executed(
    url: str, proxy: FaultProxy, server: ServerProcess
) -> None:
    mark = {"postgresql": "$1", "mariadb": "?"}[server.engine]
    proxy.arm(Fault("clerk.insert", CUT, when="after", nth=3))
    async with connected(proxy.url(url)) as session:
        insert = await session.connection.prepare(INSERT.format(mark))
        assert proxy.seen == []
        execute = insert.fetch if server.engine == "postgresql" else insert.execute
        await execute(1)
        await execute(2)
        with pytest.raises(Exception, match=LOST):
            await execute(3)
    assert proxy.seen == ["clerk.insert"] * 3
    assert await ids(url) == [1, 2, 3]


async def test_a_batch_in_one_message_or_many_is_recognised(url: str, proxy: FaultProxy, server: ServerProcess) -> None:
    """asyncpg executes once per row and lets the server answer once; asyncmy sends one bulk command."""
    rows = [(number,) for number in range(20)]
    async with connected(proxy.url(url)) as session:
        if server.engine == "postgresql":
            await session.connection.executemany(INSERT.format("$1"), rows)
        else:
            insert = await session.connection.prepare(INSERT.format("?"))
            await insert.execute_bulk(rows)
        assert await session.run("/* clerk.count */ SELECT count(*) FROM ledger") == [(20,)]
    assert proxy.seen == ["clerk.insert"] * {"postgresql": 20, "mariadb": 1}[server.engine] + ["clerk.count"]


async def test_a_cut_within_a_batch_undoes_the_batch(url: str, proxy: FaultProxy, server: ServerProcess) -> None:
    if server.engine == "mariadb":
        pytest.skip("a bulk command is one message")
    proxy.arm(Fault("clerk.insert", CUT, nth=7))
    async with connected(proxy.url(url)) as session:
        with pytest.raises(Exception, match=LOST):
            await session.connection.executemany(INSERT.format("$1"), [(number,) for number in range(20)])
    assert await ids(url) == []


async def test_a_procedure_has_answered_after_its_last_result(
    url: str, proxy: FaultProxy, server: ServerProcess
) -> None:
    if server.engine == "postgresql":
        pytest.skip("a PostgreSQL answer ends with ReadyForQuery, whatever is in it")
    proxy.arm(Fault("clerk.call", CUT, when="after", nth=2))
    async with connected(proxy.url(url)) as session:
        await session.run(
            "CREATE PROCEDURE enter(number int) BEGIN SELECT 1; SELECT seq FROM seq_1_to_1000; "
            "INSERT INTO ledger (id) VALUES (number); END"
        )
        assert await session.run("/* clerk.call */ CALL enter(1)") == [(1,)]
        with pytest.raises(Exception, match=LOST):
            await session.run("/* clerk.call */ CALL enter(2)")
    assert await ids(url) == [1, 2]


async def test_values_of_many_megabytes_pass_both_ways(url: str, proxy: FaultProxy) -> None:
    note = "x" * 9_000_000
    async with connected(proxy.url(url)) as session:
        await session.run(LONG_INSERT.format(1, note))
        assert await session.run("/* clerk.read */ SELECT note, note FROM ledger") == [(note, note)]


async def test_many_small_rows_pass(url: str, proxy: FaultProxy, many_rows: str) -> None:
    async with connected(proxy.url(url)) as session:
        assert len(await session.run(many_rows)) == 100_000
        assert await session.run("SELECT 1") == [(1,)]


async def test_an_answer_of_many_rows_is_held_back_as_a_whole(url: str, proxy: FaultProxy, many_rows: str) -> None:
    proxy.arm(Fault("clerk.read", FREEZE, when="after"))
    async with connected(proxy.url(url)) as session:
        reading = asyncio.create_task(session.run(many_rows))
        await proxy.until_fired()
        assert not reading.done()
        proxy.thaw()
        assert len(await reading) == 100_000


async def test_many_connections_at_once_do_not_mix(url: str, proxy: FaultProxy) -> None:
    async def work(number: int) -> None:
        async with connected(proxy.url(url)) as session:
            await session.run(INSERT.format(number))
            assert await session.run(f"/* clerk.read */ SELECT {number}") == [(number,)]

    await asyncio.gather(*map(work, range(50)))
    assert await ids(url) == list(range(50))
    assert sorted(proxy.seen) == ["clerk.insert"] * 50 + ["clerk.read"] * 50


@pytest.mark.parametrize(("when", "kept"), [("before", []), ("after", [1])])
async def test_a_frozen_connection_goes_on_after_the_thaw(
    url: str, proxy: FaultProxy, when: When, kept: list[int]
) -> None:
    proxy.arm(Fault(statement="clerk.insert", when=when, action=FREEZE))
    async with connected(proxy.url(url)) as session, connected(proxy.url(url)) as other:
        insert = asyncio.create_task(session.run(INSERT.format(1)))
        await proxy.until_fired()
        assert await ids(url) == kept
        assert await other.run("SELECT 7") == [(7,)]
        assert not insert.done()
        proxy.thaw()
        await insert
        assert await session.run("SELECT 1") == [(1,)]
    assert await ids(url) == [1]


async def test_the_server_does_not_see_the_end_of_a_client_behind_a_frozen_connection(
    url: str, proxy: FaultProxy
) -> None:
    """The half-open connection: its transaction goes on holding its locks until the thaw."""
    proxy.arm(Fault(statement="clerk.idle", when="after", action=FREEZE))
    async with connected(proxy.url(url)) as session:
        await session.run("BEGIN")
        await session.run(INSERT.format(1))
        idle = asyncio.create_task(session.run("/* clerk.idle */ SELECT 1"))
        await proxy.until_fired()
        idle.cancel()
        await asyncio.wait([idle])
    async with connected(url) as other:
        await hurry(other)
        with pytest.raises(Exception, match=r"(?i)lock"):
            await other.run(INSERT.format(1))
        proxy.thaw()
        await eventually(lambda: succeeds(other, INSERT.format(1)), what="the lock to be free")


async def test_a_server_can_be_played_that_accepts_skip_locked_without_honouring_it(
    url: str, proxy: FaultProxy
) -> None:
    async with connected(url) as owner, connected(proxy.url(url)) as session:
        await owner.run(INSERT.format(1))
        await owner.run("BEGIN")
        await owner.run("SELECT id FROM ledger WHERE id = 1 FOR UPDATE")
        await hurry(session)
        assert await session.run(CLAIM) == []
        rewrite = Fault(statement="clerk.*", action=REWRITE(b"SKIP LOCKED", b" " * 11))
        proxy.arm(rewrite)
        with pytest.raises(Exception, match=r"(?i)lock"):
            await session.run(f"{CLAIM}  ")
        assert proxy.fired == [rewrite]
        await owner.run("ROLLBACK")


async def test_a_rewrite_of_everything_covers_statements_without_a_name(url: str, proxy: FaultProxy) -> None:
    proxy.arm(Fault(statement="*", action=REWRITE(b"SELECT 1", b"SELECT 2")))
    async with connected(proxy.url(url)) as session:
        assert await session.run("SELECT 1") == [(2,)]
        assert await session.run("/* clerk.read */ SELECT 1") == [(2,)]


def test_a_rewrite_keeps_the_length_of_the_statement() -> None:
    with pytest.raises(ValueError, match="equal length"):
        REWRITE(b"SKIP LOCKED", b"")


CHILD = """
import asyncio, sys
from tests.support.sessions import connect

async def main():
    session = await connect(sys.argv[1])
    for number in range(10):
        await session.run(f"/* clerk.insert */ INSERT INTO ledger (id) VALUES ({number})")
        await session.run(f"/* clerk.check */ SELECT {number}")
        print("done", number, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize(("when", "kept"), [("before", [0, 1]), ("after", [0, 1, 2])])
async def test_a_killed_process_is_dead_exactly_at_the_statement(
    url: str, proxy: FaultProxy, start: Start, when: When, kept: list[int]
) -> None:
    proxy.arm(Fault(statement="clerk.insert", when=when, action=KILL(lambda: child.pid), nth=3))
    child = start(Process([sys.executable, "-c", CHILD, proxy.url(url)], cwd=ROOT))
    await proxy.until_fired()
    assert child.wait() == -signal.SIGKILL
    assert await ids(url) == kept
    assert proxy.seen == ["clerk.insert", "clerk.check"] * 2 + ["clerk.insert"]


async def test_the_process_behind_the_connection_is_found_by_itself(url: str, proxy: FaultProxy, start: Start) -> None:
    proxy.arm(Fault(statement="clerk.check", when="before", action=KILL()))
    child = start(Process([sys.executable, "-c", CHILD, proxy.url(url)], cwd=ROOT))
    await proxy.until_fired()
    assert child.wait() == -signal.SIGKILL
    assert await ids(url) == [0]


async def test_the_tests_never_kill_themselves_and_a_failure_of_the_proxy_is_not_hidden(
    url: str, server: ServerProcess
) -> None:
    proxy = FaultProxy(server.port, server.engine, Fault("clerk.insert", KILL(os.getpid()))).start()
    async with connected(proxy.url(url)) as session:
        with pytest.raises(Exception, match=LOST):
            await session.run(INSERT.format(1))
    with pytest.raises(ExceptionGroup, match="the fault proxy failed") as failure:
        proxy.stop()
    assert failure.group_contains(RuntimeError, match="the tests themselves")


async def test_refused_connections_are_refused_until_they_are_allowed_again(url: str, proxy: FaultProxy) -> None:
    async with connected(proxy.url(url)) as session:
        proxy.refuse_connections(True)
        with pytest.raises(Exception, match=r"(?i)refused|connect"):
            await connect(proxy.url(url))
        assert await session.run("SELECT 1") == [(1,)]
    proxy.refuse_connections(False)
    async with connected(proxy.url(url)) as session:
        assert await session.run("SELECT 1") == [(1,)]


async def test_all_connections_can_be_cut_at_once(url: str, proxy: FaultProxy) -> None:
    async with connected(proxy.url(url)) as first, connected(proxy.url(url)) as second:
        proxy.cut_all()
        for session in (first, second):
            with pytest.raises(Exception, match=LOST):
                await session.run("SELECT 1")


def test_a_fault_that_does_not_strike_is_reported_with_what_was_seen(proxy: FaultProxy) -> None:
    proxy.arm(Fault("clerk.insert", CUT))
    with pytest.raises(AssertionError, match=r"not all faults struck in 0\.01 s.*seen=\[\]"):
        proxy.wait_fired(0.01)
    proxy.clear()
    proxy.wait_fired(0.01)


async def hurry(session: Session) -> None:
    """Let this session give up soon when it waits for a lock."""
    postgresql = "SET lock_timeout = '100ms'"
    await session.run(postgresql if hasattr(session.connection, "fetch") else "SET innodb_lock_wait_timeout = 1")


async def succeeds(session: Session, sql: str) -> bool:
    try:
        await session.run(sql)
    except Exception:
        return False
    return True
