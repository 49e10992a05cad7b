"""Behind PgBouncer in transaction mode, where there is no LISTEN and a session keeps nothing.

`CORE` of tests/conftest.py says what runs there in every run; here is what only a pooler can bring about.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from tests.conftest import CORE, TESTS
from tests.support.commands import run, single_login
from tests.support.database import Database
from tidings.db.engine import open_engine
from tidings.db.migrations.migrator import Migrator
from tidings.db.names import Names
from tidings.db.statements import Statement
from tidings.errors import ServerUnsuitable

pytestmark = pytest.mark.one_engine("pgbouncer", reason="only PostgreSQL has poolers that take its sessions apart")

PID = Statement("test.pid", "SELECT pg_backend_pid() AS pid", ())


def pooled(database: Database) -> str:
    """The administrator's URL by way of the pooler."""
    return database.admin_url.replace(f":{database.server.port}/", f":{database.server.roles_port}/")


def test_what_runs_there_in_every_run_exists() -> None:
    assert [path for path in CORE if not (TESTS / path).is_file()] == []


async def test_one_connection_is_served_by_many_sessions_and_no_statement_is_taken_for_another(
    engine: Database,
) -> None:
    """Statements that were prepared under the same name by two processes would be."""
    many = [await engine.open("observer", size=1) for _ in range(4)]
    # Three take turns on four sessions, so that each of them meets every session.
    some = many[:3]
    pids = set()
    async with AsyncExitStack() as at_once:
        # So that the pooler has several to choose from.
        for one in many:
            await at_once.enter_async_context(one.transaction())
    for _ in range(10):
        for number, one in enumerate(some):
            answer = Statement(f"test.answer{number}", f"SELECT {number} + {{0}}::int AS answer", ("x",))
            async with one.transaction() as transaction:
                (row,) = await transaction.rows(answer, x=number)
                (pid,) = await transaction.rows(PID)
            assert row["answer"] == 2 * number
            pids.add(pid["pid"])
    assert len(pids) > 1


async def test_without_a_login_of_its_own_no_role_comes_by_way_of_a_pooler(engine: Database) -> None:
    """A role that is set for a session would be that of whoever gets the session next."""
    for group, schema in (("tidings_role_observer", ""), ("", None)):
        with pytest.raises(ServerUnsuitable, match="pooler") as refused:
            await open_engine(pooled(engine), owner="observer", names=engine.names, group=group, schema=schema)
        assert "TIDINGS_DATABASE_URL_<ROLE>" in refused.value.remedy


async def test_two_migrators_at_once_are_safe_there_too(engine: Database) -> None:
    names = Names(schema="by_pooler", prefix="by_pooler")

    async def migrate() -> list[str]:
        migrator = await open_engine(pooled(engine), owner="migrate", names=names, schema="", size=4)
        try:
            return await Migrator(migrator, names).migrate(Database(engine.server, names).passwords)
        finally:
            await migrator.close()

    made = await asyncio.wait_for(asyncio.gather(migrate(), migrate()), 60)
    assert sorted(map(len, made))[0] == 0
    assert max(map(len, made)) > 0
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    connection = await asyncpg.connect(engine.admin_url)
    assert await connection.fetchval(locks) == 0
    connection.terminate()


@pytest.mark.slow
async def test_the_command_line_says_why_a_single_login_is_not_enough(engine: Database, tmp_path: Path) -> None:
    environment = {**single_login(engine), "TIDINGS_DATABASE_URL": pooled(engine)}
    ended = await asyncio.to_thread(run, "events", "list", cwd=tmp_path, exit=1, env=environment)
    assert "pooler" in ended.stderr
