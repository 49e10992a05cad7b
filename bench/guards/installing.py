"""Installations that differ in their guards only.

`guarded` is what the migrations make, `bare` has no guard left. MariaDB's writer marker is no guard but what routing
rests on: `bare` keeps it, and `unmarked` goes without it too, so that its cost can be told apart.
"""

from tests.support.database import Database
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.names import Names
from tidings.tables import TRUNCATE_GUARD, tables_of

VARIANTS = {"postgresql": ("guarded", "bare"), "mariadb": ("guarded", "bare", "unmarked")}
_MARKER = """
    CREATE DEFINER = `{definer}`@`localhost` TRIGGER event_written BEFORE INSERT ON events FOR EACH ROW
    INSERT INTO event_writers VALUES (NULL)
"""


async def installed(server: PostgresServer | MariaDBServer, variant: str) -> Database:
    database = Database(server, Names(schema=variant, prefix=variant))
    await database.migrate()
    if variant != "guarded":
        await _drop_guards(database)
    if variant == "bare" and database.family == "mysql":
        await database.sql(_MARKER.format(definer=database.names.definer), "admin")
    return database


async def _drop_guards(database: Database) -> None:
    for table in tables_of(database.family).values():
        for guard in (table.guards or {}).get(database.family, ()):
            where = f" ON {table.name}" if database.family == "postgresql" else ""
            await database.sql(f"DROP TRIGGER {guard}{where}", "admin")
    if database.family == "mysql":
        await database.sql(f"DROP TABLE {TRUNCATE_GUARD.name}", "admin")
