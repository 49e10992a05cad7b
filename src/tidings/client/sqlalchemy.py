"""SQLAlchemy's connections and sessions, sync and async, over any driver that is known without it too."""

from collections.abc import Callable
from typing import Any

from tidings.client.binding import Mark, format_mark, hex_mark, number_mark
from tidings.client.drivers import DriverUnknown, OpeningWay, Row, Way, rows_of
from tidings.db.dialect import POSTGRESQL, Dialect, dialect_of

DRIVERS: dict[str, tuple[Mark, Callable[[Any], Dialect]]] = {
    "psycopg": (format_mark, lambda dialect: POSTGRESQL),
    "psycopg_async": (format_mark, lambda dialect: POSTGRESQL),
    "psycopg2": (format_mark, lambda dialect: POSTGRESQL),
    "asyncpg": (number_mark, lambda dialect: POSTGRESQL),
    **dict.fromkeys(
        ("pymysql", "mysqldb", "aiomysql", "asyncmy"),
        (hex_mark, lambda dialect: dialect_of("MariaDB" if dialect.is_mariadb else "MySQL")),
    ),
}


def connection_way(connection: Any) -> Way:
    def fetch(text: str, values: tuple[Any, ...]) -> list[Row]:
        return _rows(connection.exec_driver_sql(text, values))

    return _way(connection.dialect, fetch)


def async_connection_way(connection: Any) -> Way:
    async def fetch(text: str, values: tuple[Any, ...]) -> list[Row]:
        return _rows(await connection.exec_driver_sql(text, values))

    return _way(connection.dialect, fetch, is_async=True)


def session_way(session: Any) -> Way:
    return connection_way(session.connection())


def async_session_way(session: Any) -> OpeningWay:
    async def opened() -> Way:
        # Before it is connected, SQLAlchemy does not know MariaDB from MySQL.
        return async_connection_way(await session.connection())

    return OpeningWay(opened)


def _way(dialect: Any, fetch: Callable[..., Any], *, is_async: bool = False) -> Way:
    if dialect.driver not in DRIVERS:
        raise DriverUnknown(dialect.driver)
    mark, dialect_for = DRIVERS[dialect.driver]
    return Way(dialect_for(dialect), mark, fetch, is_async)


def _rows(result: Any) -> list[Row]:
    return rows_of(result.keys(), result.all())
