"""Two installations on one server: neither sees the other, and nobody can start one on top of another by accident."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.db.test_rights import difference
from tests.db.test_rights_matrix import is_denied
from tests.support.database import Database
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.accounts import ALL_ROLES
from tidings.db.engine import open_engine
from tidings.db.migrations.migrator import Migrator
from tidings.db.names import Names
from tidings.errors import LoginRefused, SchemaError
from tidings.tables import columns_of, tables_of

pytestmark = pytest.mark.slow

# To MariaDB's grants on a whole database an underscore is any one character: these two would be one.
ONE, OTHER = Names("twin_a", "twin_a"), Names("twinxa", "twinxa")

Install = Callable[..., Awaitable[Database]]


@pytest.fixture(scope="module")
def made() -> dict[object, Database]:
    return {}


@pytest.fixture
async def install(server: PostgresServer | MariaDBServer, made: dict[object, Database]) -> AsyncIterator[Install]:
    """Makes an installation on this server, once for all tests of this file."""

    async def installed(names: Names, database: str = "") -> Database:
        key = (server, names, database)
        if key not in made:
            made[key] = Database(server, names, database=database)
            if database:
                await create_database(made[key], database)
            await made[key].migrate()
        return made[key]

    yield installed
    for installation in made.values():
        await installation.close()


async def create_database(installation: Database, database: str) -> None:
    admin = await open_engine(installation.server.admin_url, owner="test", names=Names(), schema="")
    async with admin.bare_session() as session:
        await session.command(f"CREATE DATABASE {database}")
    await admin.close()


def touches(family: str, schema: str) -> list[str]:
    """Every table of the installation in `schema`, and the writes that roles do most; none would change a row."""
    texts = []
    for name, table in tables_of(family).items():
        column = columns_of(table, family)[-1].name
        texts += [f"SELECT {column} FROM {schema}.{name} LIMIT 0", f"DELETE FROM {schema}.{name} WHERE false"]
    return [
        *texts,
        f"INSERT INTO {schema}.audit_log (actor) SELECT NULL WHERE false",
        f"INSERT INTO {schema}.events (event_type) SELECT NULL WHERE false",
        f"UPDATE {schema}.webhook_delivery_jobs SET status = DEFAULT WHERE false",
        f"UPDATE {schema}.sys_pending_tasks SET status = DEFAULT WHERE false",
    ]


async def test_no_login_of_one_can_touch_a_table_of_the_other(install: Install) -> None:
    one, other = await install(ONE), await install(OTHER)
    assert await trespasses(one, OTHER.schema) == []
    assert await trespasses(other, ONE.schema) == []


@pytest.mark.one_engine("postgresql", reason="a MariaDB login is not bound to a database in the first place")
async def test_nor_from_another_database_of_the_server(install: Install) -> None:
    """Everybody may connect to any database of a PostgreSQL server; that alone opens nothing."""
    one, other = await install(ONE), await install(Names("twin_b", "twin_b"), database="elsewhere")
    visitor = Database(one.server, ONE, database="elsewhere")
    visitor.passwords = one.passwords
    assert await trespasses(visitor, "twin_b") == []
    visitor = Database(one.server, Names("twin_b", "twin_b"))
    visitor.passwords = other.passwords
    assert await trespasses(visitor, ONE.schema) == []


async def trespasses(visitor: Database, schema: str) -> list[str]:
    """What the logins of one installation got away with in the schema of another."""
    done = []
    for role in ALL_ROLES:
        options: dict[str, Any] = {"schema": ""} if visitor.family == "postgresql" else {}
        login = await visitor.open(role, **options)
        async with login.bare_session() as session:
            done += [
                f"{role}: {text}"
                for text in touches(visitor.family, schema)
                if not await is_denied(session, text, visitor.family)
            ]
    await visitor.close()
    return done


@pytest.mark.one_engine("mariadb", reason="PostgreSQL logins can connect anywhere, and see nothing there")
async def test_no_login_can_even_enter_the_database_of_the_other(install: Install) -> None:
    one, other = await install(ONE), await install(OTHER)
    for visitor, place in ((one, OTHER.schema), (other, ONE.schema)):
        for role in ALL_ROLES:
            with pytest.raises(LoginRefused):
                await open_engine(visitor.url(role), owner=role, names=visitor.names, schema=place)


async def test_no_login_of_one_can_call_a_routine_of_the_other(install: Install) -> None:
    one, other = await install(ONE), await install(OTHER)
    call = (
        "SELECT {}.requeue_dead_letters('{{}}')" if one.family == "postgresql" else "CALL {}.requeue_dead_letters('[]')"
    )
    for visitor, place in ((one, OTHER.schema), (other, ONE.schema)):
        for role in ("dead_letter_operator", "schema_owner"):
            login = await visitor.open(role)
            async with login.bare_session() as session:
                assert await is_denied(session, call.format(place), visitor.family), role


async def test_migrating_one_changes_nothing_in_the_rights_of_the_other(install: Install, engine: Database) -> None:
    installations = [engine, await install(ONE), await install(OTHER)]
    before = [await one.granted_rights() for one in installations]
    assert all(before)
    for migrated in installations:
        await migrated.migrate()
        assert [await one.granted_rights() for one in installations] == before
    for one in installations:
        assert await difference(one) == ([], [])
        await one.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')", role="event_ingest_writer")
        assert await one.value("SELECT COUNT(*) FROM events", role="observer") == 1
        await one.empty()


async def test_the_same_prefix_in_another_schema_is_refused_with_the_place_and_the_remedy(engine: Database) -> None:
    intruder = Database(engine.server, Names(schema="another"))
    place = {"postgresql": "schema tidings", "mysql": "database tidings"}[engine.family]
    await assert_refused(intruder, place)
    assert await difference(engine) == ([], [])


@pytest.mark.one_engine("postgresql", reason="on MariaDB the schema is the database")
async def test_the_same_prefix_in_another_database_is_refused_too(engine: Database) -> None:
    intruder = Database(engine.server, Names(), database="second_database")
    await create_database(intruder, "second_database")
    await assert_refused(intruder, "database postgres")


async def assert_refused(intruder: Database, place: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        await intruder.migrate()
    assert place in refusal.value.what
    assert "TIDINGS_PREFIX" in refusal.value.remedy
    with pytest.raises(SchemaError, match="has no"):
        await intruder.open("admin")


async def test_it_is_refused_too_when_no_accounts_are_to_be_made(engine: Database) -> None:
    """Otherwise the groups of the first installation would be given rights in the second."""
    names = Names(schema="third")
    admin = await open_engine(engine.admin_url, owner="migrate", names=names, schema="", size=4)
    try:
        with pytest.raises(SchemaError, match="already serves another installation"):
            await Migrator(admin, names).migrate(None)
    finally:
        await admin.close()
