"""Installations that differ in their guards only.

`guarded` is what the migrations make, and `bare` has no guard left. On MariaDB the writer marker is no guard: `guarded`
goes without it, and `marked` is the whole.
"""

from tests.support.database import Database
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.accounts import definer_text
from tidings.db.dialect import MARIADB
from tidings.db.migrations.files import migrations, step_text, words
from tidings.db.names import Names
from tidings.tables import TRUNCATE_GUARD, tables_of

VARIANTS = {"postgresql": ("guarded", "bare"), "mariadb": ("guarded", "bare", "marked")}
_MARK = "INSERT INTO event_writers VALUES (NULL);"


async def installed(server: PostgresServer | MariaDBServer, variant: str) -> Database:
    database = Database(server, Names(schema=variant, prefix=variant))
    await database.migrate()
    if variant == "bare":
        await _drop_guards(database)
    elif variant == "guarded" and database.family == "mysql":
        await _drop_marker(database)
    return database


async def _drop_guards(database: Database) -> None:
    for table in tables_of(database.family).values():
        for guard in (table.guards or {}).get(database.family, ()):
            where = f" ON {table.name}" if database.family == "postgresql" else ""
            await database.sql(f"DROP TRIGGER {guard}{where}", "admin")
    if database.family == "mysql":
        await database.sql(f"DROP TABLE {TRUNCATE_GUARD.name}", "admin")


async def _drop_marker(database: Database) -> None:
    (step,) = (step for migration in migrations("mysql") for step in migration.steps if step.name == "event_written")
    text = step_text(step, words(database.names, MARIADB, definer_text(database.names)))
    assert _MARK in text
    await database.sql("DROP TRIGGER event_written", "admin")
    await database.sql(text.replace(_MARK, ""), "admin")
