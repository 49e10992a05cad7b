"""How each driver is asked for rows, in a cursor of our own making: a caller's may give rows of any shape.

Drivers are imported when one of their connections is at hand, never before.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tidings.client.binding import Mark, format_mark, hex_mark, number_mark
from tidings.db.dialect import POSTGRESQL, Dialect, dialect_of

Row = Mapping[str, Any]


class DriverUnknown(Exception):
    """SQLAlchemy and Django also speak to databases, and through drivers, that we do not know."""


@dataclass(frozen=True)
class Way:
    """A caller's connection as we need it; `fetch` gives rows, or an awaitable of them if `is_async`."""

    dialect: Dialect
    mark: Mark
    fetch: Callable[[str, tuple[Any, ...]], Any]
    is_async: bool = False


@dataclass(frozen=True)
class OpeningWay:
    """The way of something async that has to connect before it can be told what it leads to."""

    opened: Callable[[], Awaitable[Way]]


def rows_of(columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> list[Row]:
    names = list(columns)
    return [dict(zip(names, map(_as_text, row), strict=True)) for row in rows]


def _as_text(value: Any) -> Any:
    """Some drivers can be told to leave texts undecoded; all of ours here are ASCII."""
    return value.decode() if isinstance(value, bytes) else value


def _names(cursor: Any) -> list[str]:
    return [column[0] for column in cursor.description]


def _blocking(cursor_of: Callable[[], Any]) -> Callable[[str, tuple[Any, ...]], list[Row]]:
    def fetch(text: str, values: tuple[Any, ...]) -> list[Row]:
        with cursor_of() as cursor:
            cursor.execute(text, values)
            return rows_of(_names(cursor), cursor.fetchall())

    return fetch


def _awaiting(cursor_of: Callable[[], Any]) -> Callable[[str, tuple[Any, ...]], Awaitable[list[Row]]]:
    async def fetch(text: str, values: tuple[Any, ...]) -> list[Row]:
        async with cursor_of() as cursor:
            await cursor.execute(text, values)
            return rows_of(_names(cursor), await cursor.fetchall())

    return fetch


def psycopg(connection: Any) -> Way:
    from psycopg.rows import tuple_row

    return Way(POSTGRESQL, format_mark, _blocking(lambda: connection.cursor(row_factory=tuple_row)))


def psycopg_async(connection: Any) -> Way:
    from psycopg.rows import tuple_row

    return Way(POSTGRESQL, format_mark, _awaiting(lambda: connection.cursor(row_factory=tuple_row)), is_async=True)


def psycopg2(connection: Any) -> Way:
    from psycopg2.extensions import cursor

    return Way(POSTGRESQL, format_mark, _blocking(lambda: connection.cursor(cursor_factory=cursor)))


def asyncpg(connection: Any) -> Way:
    async def fetch(text: str, values: tuple[Any, ...]) -> list[Row]:
        return [dict(row) for row in await connection.fetch(text, *values)]

    return Way(POSTGRESQL, number_mark, fetch, is_async=True)


def pymysql(connection: Any) -> Way:
    from pymysql.cursors import Cursor

    return Way(dialect_of(connection.get_server_info()), hex_mark, _blocking(lambda: connection.cursor(Cursor)))


def mysqlclient(connection: Any) -> Way:
    from MySQLdb.cursors import Cursor

    return Way(dialect_of(connection.get_server_info()), hex_mark, _blocking(lambda: connection.cursor(Cursor)))


def aiomysql(connection: Any) -> Way:
    from aiomysql.cursors import Cursor

    return _quiet_way(connection, Cursor)


def asyncmy(connection: Any) -> Way:
    from asyncmy.cursors import Cursor

    return _quiet_way(connection, Cursor)


def _quiet_way(connection: Any, kind: Any) -> Way:
    fetch = _awaiting(lambda: connection.cursor(_quiet(kind)))
    return Way(dialect_of(connection.get_server_info()), hex_mark, fetch, is_async=True)


@cache
def _quiet(cursor: Any) -> type[Any]:
    """These ask for the warnings of each INSERT IGNORE in a round trip of its own; that an id was taken, we see."""

    async def _show_warnings(self: Any, connection: Any) -> None:
        pass

    return type("QuietCursor", (cursor,), {"_show_warnings": _show_warnings})


def django(connection: Any) -> Way:
    fetch = _blocking(connection.cursor)
    ways: dict[str, Callable[[], Way]] = {
        "postgresql": lambda: Way(POSTGRESQL, format_mark, fetch),
        "mysql": lambda: Way(dialect_of("MariaDB" if connection.mysql_is_mariadb else "MySQL"), hex_mark, fetch),
    }
    if connection.vendor not in ways:
        raise DriverUnknown(connection.vendor)
    return ways[connection.vendor]()
