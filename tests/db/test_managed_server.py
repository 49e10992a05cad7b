"""Servers on which nobody is a superuser, as managed ones are: an administrator with few rights can still migrate."""

import secrets
from urllib.parse import urlsplit, urlunsplit

import pytest

from tests.support.database import Database, as_it_stands
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.names import Names
from tidings.errors import SchemaError, StatementFailed
from tidings.flow import ROLE_NAMES

Server = PostgresServer | MariaDBServer
ADMIN_OF_MARIADB = (
    "GRANT ALL ON `{name}`.* TO {name}@'%' WITH GRANT OPTION",
    "GRANT CREATE USER, SET USER ON *.* TO {name}@'%'",
    "GRANT SELECT, UPDATE ON mysql.* TO {name}@'%'",
)


async def administered(server: Server, *, may_make_roles: bool) -> Database:
    """An installation to be made by an administrator of its own."""
    name = f"managed{secrets.token_hex(4)}"
    root = Database(server, Names(schema=name, prefix=name))
    engine = await root.open("admin", schema="")
    async with engine.bare_session() as session:
        if root.family == "postgresql":
            makes = "CREATEROLE" if may_make_roles else "NOCREATEROLE"
            await session.command(f"CREATE ROLE {name} LOGIN {makes} PASSWORD 'secret'")
            await session.command(f"CREATE DATABASE {name} OWNER {name}")
        else:
            await session.command(f"CREATE USER {name}@'%' IDENTIFIED BY 'secret'")
            for grant in ADMIN_OF_MARIADB if may_make_roles else ADMIN_OF_MARIADB[::2]:
                await session.command(grant.format(name=name))
    await root.close()
    parts = urlsplit(server.admin_url)
    managed = Database(server, root.names)
    managed.admin_url = urlunsplit(parts._replace(netloc=f"{name}:secret@127.0.0.1:{parts.port}", path=f"/{name}"))
    return managed


@pytest.mark.slow
async def test_an_administrator_who_is_no_superuser_can_migrate_and_act_as_every_role(server: Server) -> None:
    managed = await administered(server, may_make_roles=True)
    await managed.migrate()
    await managed.migrate()
    for role in ROLE_NAMES:
        engine = await managed.open("admin", group=managed.names.group(role))
        async with engine.transaction() as transaction:
            await transaction.command("SELECT version FROM config_version")
    await managed.close()
    await managed.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')", role="event_ingest_writer")


async def test_one_without_the_right_to_make_roles_is_told_so_and_leaves_no_table(server: Server) -> None:
    managed = await administered(server, may_make_roles=False)
    with pytest.raises((StatementFailed, SchemaError)) as refused:
        await managed.migrate()
    assert "--roles=print" in refused.value.remedy
    schema = managed.names.schema
    tables = f"SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '{schema}'"
    engine = await managed.open("admin", schema="")
    async with engine.transaction() as transaction:
        rows = await transaction.rows(as_it_stands(tables))
    await managed.close()
    # The ledger alone.
    assert {row["name"] for row in rows} == {"schema_migrations"}


@pytest.mark.one_engine("postgresql", reason="MariaDB knows no owners of tables")
async def test_tables_made_before_there_was_an_owner_are_handed_over_to_it(server: Server) -> None:
    managed = await administered(server, may_make_roles=True)
    await managed.migrate(make_accounts=False)
    await managed.migrate()
    owners = await managed.sql(
        f"SELECT DISTINCT tableowner FROM pg_catalog.pg_tables WHERE schemaname = '{managed.names.schema}'"
    )
    assert [row["tableowner"] for row in owners] == [managed.names.group("schema_owner")]
