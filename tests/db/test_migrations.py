"""Migrations are safe: run twice, at the same time, killed anywhere, or by hand, they give the one schema."""

import asyncio
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.fault_proxy import KILL, REWRITE, Fault, FaultProxy
from tests.support.processes import Process, Start
from tests.support.server_process import ENVIRONMENT, PASSWORD
from tests.support.servers import MariaDBServer, PostgresServer, mariadb_program, postgres_program
from tidings.db.catalogue.spelling import differences, expected_lines
from tidings.db.dialect import DIALECTS
from tidings.db.engine import open_engine
from tidings.db.migrations.files import migrations, newest_version
from tidings.db.migrations.migrator import Migrator
from tidings.db.migrations.printing import printed_migration, printed_roles
from tidings.db.names import Names
from tidings.db.rights import wanted_rights
from tidings.errors import SchemaError, ServerUnsuitable
from tidings.tables import tables_of
from tidings.telemetry.notices import MigrationStepApplied, Notice, RightsChanged

pytestmark = pytest.mark.slow

EVERY_TABLE = set(tables_of("postgresql"))
ROOT = Path(__file__).parents[2]
Server = PostgresServer | MariaDBServer
_numbers = itertools.count(1)


class Site(Database):
    """A place on the shared server for an installation of its own, where nothing has been made yet."""

    def __init__(self, server: Server) -> None:
        name = f"site{next(_numbers)}"
        super().__init__(server, Names(schema=name, prefix=name))

    @asynccontextmanager
    async def migrator(self, url: str = "") -> AsyncIterator[Migrator]:
        engine = await open_engine(url or self.admin_url, owner="migrate", names=self.names, schema="", size=4)
        try:
            yield Migrator(engine, self.names)
        finally:
            await engine.close()

    async def drift(self) -> list[str]:
        """How the server's catalogue differs from the written list."""
        return differences(expected_lines(self.kind), await self.schema_lines())

    async def tables(self) -> set[str]:
        text = f"SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '{self.names.schema}'"
        return {row["name"] for row in await self.admin_sql(text)}

    async def admin_sql(self, text: str) -> Any:
        return await Database(self.server, Names(schema="", prefix=self.names.prefix)).sql(text, role="admin")

    async def ledger(self) -> list[tuple[int, str]]:
        rows = await self.admin_sql(f"SELECT version, step FROM {self.names.schema}.schema_migrations")
        return sorted((row["version"], row["step"]) for row in rows)

    def whole_ledger(self) -> list[tuple[int, str]]:
        steps = [(m.version, step.name) for m in migrations(self.family) for step in m.steps]
        return sorted([(0, "begun"), *steps])

    async def is_whole(self) -> bool:
        """Exactly the schema, the rights and the ledger that this program knows."""
        assert await self.drift() == []
        assert await self.granted_rights() == wanted_rights(self.names, self.family)
        assert await self.ledger() == self.whole_ledger()
        for table in ("config_version", "installation"):
            assert len(await self.admin_sql(f"SELECT * FROM {self.names.schema}.{table}")) == 1
        return True


@pytest.fixture
async def site(server: Server) -> AsyncIterator[Site]:
    site = Site(server)
    yield site
    await site.close()


# --- once, twice, together -------------------------------------------------------------------------------------------


async def test_an_empty_server_is_migrated_and_told_step_by_step(site: Site, told: list[Notice]) -> None:
    async with site.migrator() as migrator:
        needed = await migrator.missing_steps()
        made = await migrator.migrate(site.passwords)
        assert await migrator.missing_steps() == []
    assert sorted(made) == sorted(site.passwords)
    steps = [(notice.version, notice.step) for notice in told if isinstance(notice, MigrationStepApplied)]
    assert steps == needed
    assert await site.is_whole()


async def test_a_second_migration_changes_nothing(site: Site, told: list[Notice]) -> None:
    await site.migrate()
    told.clear()
    before = await site.admin_sql(f"SELECT * FROM {site.names.schema}.schema_migrations ORDER BY version, step")
    assert await site.migrate() == []
    assert told == []
    assert before == await site.admin_sql(f"SELECT * FROM {site.names.schema}.schema_migrations ORDER BY version, step")
    assert await site.is_whole()


@pytest.mark.parametrize("migrators", [2, 5])
async def test_several_migrators_at_once_all_succeed_and_each_step_is_done_once(
    site: Site, told: list[Notice], migrators: int
) -> None:
    made = await asyncio.gather(*(site.migrate() for _ in range(migrators)))
    assert sorted(itertools.chain(*made)) == sorted(site.passwords)
    steps = [notice.step for notice in told if isinstance(notice, MigrationStepApplied)]
    assert len(steps) == len(set(steps)) == len(site.whole_ledger()) - 1
    assert len([notice for notice in told if isinstance(notice, RightsChanged)]) == 1
    assert await site.is_whole()


async def test_missing_steps_are_those_that_are_not_in_the_ledger(site: Site) -> None:
    await site.migrate()
    (first, *_, last) = migrations(site.family)[0].steps
    await site.admin_sql(
        f"DELETE FROM {site.names.schema}.schema_migrations WHERE step IN ('{first.name}', '{last.name}')"
    )
    async with site.migrator() as migrator:
        assert await migrator.missing_steps() == [(1, first.name), (1, last.name)]


async def test_a_role_may_look_whether_steps_are_missing(site: Site) -> None:
    await site.migrate()
    observer = await site.open("observer")
    assert await Migrator(observer, site.names).missing_steps() == []


async def test_a_schema_that_is_newer_than_the_program_is_left_alone(site: Site) -> None:
    await site.migrate()
    version = newest_version(site.family) + 1
    await site.admin_sql(f"INSERT INTO {site.names.schema}.schema_migrations (version, step) VALUES ({version}, 'new')")
    async with site.migrator() as migrator:
        for attempt in (migrator.missing_steps, lambda: migrator.migrate(site.passwords)):
            with pytest.raises(SchemaError, match=f"is at version {version}") as refusal:
                await attempt()
            assert "release" in refusal.value.remedy


# --- without accounts, without rights --------------------------------------------------------------------------------

DEFINERS = "SELECT DISTINCT definer AS definer FROM information_schema.{} WHERE {}_schema = '{}'"


async def test_without_accounts_everything_belongs_to_whoever_migrates(site: Site) -> None:
    async with site.migrator() as migrator:
        assert await migrator.migrate(None) == []
        assert await migrator.migrate(None) == []
    assert await site.drift() == []
    assert await site.ledger() == site.whole_ledger()
    if site.family == "mysql":
        for kind in ("trigger", "routine"):
            rows = await site.admin_sql(DEFINERS.format(f"{kind}s", kind, site.names.schema))
            assert [row["definer"] for row in rows] == ["root@127.0.0.1"]
    else:
        rows = await site.admin_sql(f"SELECT tableowner FROM pg_tables WHERE schemaname = '{site.names.schema}'")
        assert {row["tableowner"] for row in rows} == {"postgres"}


async def test_accounts_can_follow_later(site: Site) -> None:
    async with site.migrator() as migrator:
        await migrator.migrate(None)
        await migrator.migrate(site.passwords)
    assert await site.is_whole()
    assert await site.value("SELECT COUNT(*) FROM events", role="observer") == 0


MAKE_POOR = {
    "postgresql": (
        "CREATE ROLE {0} LOGIN PASSWORD 'poor'",
        'CREATE SCHEMA "{0}"',
        'GRANT USAGE, CREATE ON SCHEMA "{0}" TO {0}',
        # A type of the same name as our table is in its way.
        "CREATE TYPE {0}.subscriptions AS ENUM ('in the way')",
    ),
    "mysql": (
        "CREATE USER {0}@'%' IDENTIFIED BY 'poor'",
        "CREATE DATABASE {0}",
        "GRANT SELECT, INSERT, UPDATE, CREATE ON {0}.* TO {0}@'%'",
        "GRANT SELECT ON mysql.* TO {0}@'%'",
    ),
}


async def test_a_step_that_fails_is_named_and_the_next_migration_goes_on_from_there(site: Site) -> None:
    name = site.names.schema
    for text in MAKE_POOR[site.family]:
        await site.admin_sql(text.format(name))
    poor = site.admin_url.replace(f"root:{PASSWORD}", f"{name}:poor").replace(f"postgres:{PASSWORD}", f"{name}:poor")
    failing = {"postgresql": "subscriptions", "mysql": "event_written"}[site.family]
    async with site.migrator(poor) as migrator:
        with pytest.raises(SchemaError, match=f"Step {failing} of migration 1 failed") as failure:
            await migrator.migrate(None)
        assert "tidings migrate" in failure.value.remedy
        missing = await migrator.missing_steps()
        done = [step for step in site.whole_ledger() if step not in missing and step != (0, "begun")]
        assert done == [] if site.family == "postgresql" else (1, "events") in done
    if site.family == "postgresql":
        await site.admin_sql(f"DROP TYPE {name}.subscriptions")
    await site.migrate()
    assert await site.is_whole()


async def test_a_migrator_without_any_right_is_told_so(site: Site, engine: Database) -> None:
    async with site.migrator(engine.url("observer")) as migrator:
        with pytest.raises(SchemaError, match=r"(?i)denied"):
            await migrator.migrate(None)


# --- servers that are not as they should be --------------------------------------------------------------------------


async def test_a_server_that_ignores_skip_locked_is_refused_and_gets_no_table(site: Site) -> None:
    """TiDB accepts the words; two workers would then send the same job."""
    with FaultProxy(site.server.port, site.kind, Fault("*", REWRITE(b"SKIP LOCKED", b"           "))) as proxy:
        async with site.migrator(proxy.url(site.admin_url)) as migrator:
            with pytest.raises(ServerUnsuitable, match="SKIP LOCKED without honouring it"):
                await migrator.migrate(site.passwords)
        assert await site.tables() == {"schema_migrations"}
    assert await site.migrate()
    assert await site.is_whole()


async def test_a_server_that_skips_nothing_and_waits_for_nobody_is_refused(site: Site) -> None:
    locking, plain = b"FOR UPDATE SKIP LOCKED", b"                      "
    with FaultProxy(site.server.port, site.kind, Fault("*", REWRITE(locking, plain))) as proxy:
        async with site.migrator(proxy.url(site.admin_url)) as migrator:
            with pytest.raises(ServerUnsuitable, match="SKIP LOCKED without honouring it"):
                await migrator.migrate(site.passwords)


@pytest.mark.one_engine("mariadb")
async def test_tables_are_innodb_whatever_the_server_prefers(site: Site) -> None:
    """PostgreSQL has one kind of table. A table without transactions would lose every promise."""
    await site.admin_sql("SET GLOBAL default_storage_engine = MyISAM")
    try:
        await site.migrate()
    finally:
        await site.admin_sql("SET GLOBAL default_storage_engine = InnoDB")
    text = f"SELECT DISTINCT engine AS engine FROM information_schema.tables WHERE table_schema = '{site.names.schema}'"
    assert [row["engine"] for row in await site.admin_sql(text)] == ["InnoDB"]
    assert await site.is_whole()


# --- killed ----------------------------------------------------------------------------------------------------------


def migrating(site: Site, proxy: FaultProxy) -> Process:
    """A process that migrates, and starts anew whenever it is killed."""
    arguments = [proxy.url(site.admin_url), site.names.schema, site.names.prefix]
    return Process([sys.executable, "-m", "tests.support.migrating", *arguments], cwd=ROOT)


def killed_children(process: Process) -> int:
    last = process.wait_for_line(r"child (\d+) ended with (-?\d+)", timeout=100)
    assert last[2] == "0", process.output
    return int(last[1]) - 1


@pytest.mark.one_engine("mariadb")
async def test_a_migration_killed_between_every_step_and_its_record_goes_on_where_it_was(
    site: Site, start: Start
) -> None:
    """MariaDB commits each step by itself. Each run repeats the step that was not recorded, then falls at the next."""
    steps = len(site.whole_ledger()) - 1
    kills = [Fault("migrate.*", KILL(), "after", nth=2 * step - 1) for step in range(1, steps + 1)]
    with FaultProxy(site.server.port, site.kind, *kills) as proxy:
        assert killed_children(start(migrating(site, proxy))) == steps
        assert len(proxy.fired) == steps
    assert await site.is_whole()


async def test_a_migration_killed_wherever_it_had_got_to_can_be_repeated(site: Site, start: Start) -> None:
    """Each run gets a little further than the one before it, through all that surrounds the steps."""
    reaches = range(1, 320, 16)
    with FaultProxy(site.server.port, site.kind) as proxy:
        # The proxy counts over all runs.
        proxy.arm(*(Fault("*", KILL(), "after", nth=number) for number in itertools.accumulate(reaches)))
        assert killed_children(start(migrating(site, proxy))) == len(proxy.fired) >= 6
    assert await site.is_whole()


SURROUNDINGS = (
    "migrations.wait_for_turn",
    "migrations.record_beginning",
    "migrations.lock_beginning",
    "migrations.skip_beginning",
    "migrations.account_exists",
    "migrations.applied_steps",
    "migrations.record_step",
    "catalogue.granted_rights",
    "migrations.end_turn",
)


async def test_a_migration_killed_in_each_of_its_phases_can_be_repeated(site: Site, start: Start) -> None:
    """First before the server has heard of the statement, in the next run after it has answered."""
    with FaultProxy(site.server.port, site.kind) as proxy:
        proxy.arm(*(Fault(name, KILL(), "before") for name in SURROUNDINGS))
        proxy.arm(*(Fault(name, KILL(), "after", nth=2) for name in SURROUNDINGS))
        assert killed_children(start(migrating(site, proxy))) == len(proxy.fired) == 2 * len(SURROUNDINGS)
    assert await site.is_whole()


@pytest.mark.one_engine("postgresql")
@pytest.mark.parametrize("step", ["events", "saga_terminal", "routines_are_not_public"])
async def test_a_migration_killed_in_the_middle_leaves_nothing_half_made(site: Site, start: Start, step: str) -> None:
    """PostgreSQL makes all tables in one transaction; on MariaDB each step stands for itself."""
    with FaultProxy(site.server.port, site.kind, Fault(f"migrate.{step}", KILL(), "after")) as proxy:
        process = start(migrating(site, proxy))
        proxy.wait_fired(30)
        process.kill()
    tables = await site.tables()
    assert tables in ({"schema_migrations"}, {"schema_migrations"} | EVERY_TABLE)
    await site.migrate()
    assert await site.is_whole()


# --- by hand ---------------------------------------------------------------------------------------------------------


def run_by_hand(site: Site, script: str) -> None:
    """The way of a person with the server's own client, stopping at the first error."""
    port = str(site.server.port)
    if site.family == "postgresql":
        command = [postgres_program("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", port]
        command += ["-U", "postgres", "postgres"]
    else:
        command = [mariadb_program("mariadb"), "--no-defaults", "-h", "127.0.0.1", "-P", port, "-u", "root"]
    settings = {"PGPASSWORD": PASSWORD, "PGOPTIONS": "-c client_min_messages=warning", "MYSQL_PWD": PASSWORD}
    done = subprocess.run(command, input=script, capture_output=True, text=True, env=ENVIRONMENT | settings)
    assert (done.returncode, done.stderr) == (0, "")


async def test_the_printed_script_makes_what_a_migration_makes(site: Site) -> None:
    run_by_hand(site, printed_migration(site.names, DIALECTS[site.kind], with_roles=True))
    assert await site.is_whole()
    async with site.migrator() as migrator:
        assert await migrator.missing_steps() == []
        assert await migrator.migrate(site.passwords) == []


async def test_the_printed_script_without_roles_makes_the_tables_alone(site: Site) -> None:
    run_by_hand(site, printed_migration(site.names, DIALECTS[site.kind], with_roles=False))
    assert await site.drift() == []
    assert await site.ledger() == site.whole_ledger()


async def test_the_printed_roles_complete_a_migration_without_them(site: Site) -> None:
    async with site.migrator() as migrator:
        await migrator.migrate(None)
    run_by_hand(site, printed_roles(site.names, DIALECTS[site.kind]))
    assert await site.is_whole()
    site.passwords = dict.fromkeys(site.passwords, "CHOOSE-A-PASSWORD")
    assert await site.value("SELECT COUNT(*) FROM events", role="observer") == 0
    async with site.migrator() as migrator:
        assert await migrator.migrate(site.passwords) == []
    assert await site.is_whole()


async def test_a_schema_may_be_called_like_a_word_of_sql(server: Server) -> None:
    database = Database(server, Names(schema="lateral", prefix="select"))
    await database.migrate()
    await database.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')", role="event_ingest_writer")
    assert await database.value("SELECT COUNT(*) FROM events", role="observer") == 1
