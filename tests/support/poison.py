"""A trigger that refuses some rows, for a reason that no program could know. Only for installations to be damaged."""

from tests.support.database import Database

_POSTGRESQL = """
CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF {condition} THEN RAISE EXCEPTION 'poisoned row'; END IF;
    RETURN NEW;
END $$
"""
_MARIADB = """
CREATE TRIGGER poison BEFORE {verb} ON {table} FOR EACH ROW
IF {condition} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'poisoned row'; END IF
"""


async def plant(database: Database, verb: str, table: str, condition: str) -> None:
    if database.family == "postgresql":
        await database.sql(_POSTGRESQL.format(condition=condition))
        await database.sql(f"CREATE TRIGGER poison BEFORE {verb} ON {table} FOR EACH ROW EXECUTE FUNCTION poison()")
    else:
        # Whoever makes a trigger here lends it their rights, and the owner's login has none through its own name.
        await database.sql(_MARIADB.format(verb=verb, table=table, condition=condition), role="admin")


async def pull_out(database: Database, table: str) -> None:
    on = f" ON {table}" if database.family == "postgresql" else ""
    await database.sql(f"DROP TRIGGER poison{on}", role="admin")
