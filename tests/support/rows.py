"""Rows that a test writes by itself, as the owner."""

from tests.support.database import Database


def literal(value: object) -> str:
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return "'{}'".format(str(value).replace("'", "''"))


async def insert(database: Database, table: str, **columns: object) -> int:
    """One of them; its id."""
    values = ", ".join(map(literal, columns.values()))
    await database.sql(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")
    return int(await database.value(f"SELECT MAX(id) FROM {table}"))


async def insert_subscription(database: Database, **columns: object) -> int:
    """To everything, active and verified, unless it is said otherwise."""
    usual = {"event_type": "*", "callback_url": "https://example.com/", "active": True, "verified": True}
    return await insert(database, "subscriptions", **{**usual, **columns})
