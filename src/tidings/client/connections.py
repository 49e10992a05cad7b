"""Recognises a caller's connection by the name of its type, so that no driver has to be installed for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tidings.client import drivers, sqlalchemy
from tidings.client.drivers import DriverUnknown, OpeningWay, Way
from tidings.db.dialect import MARIADB, POSTGRESQL
from tidings.errors import InputRefused, ServerUnsuitable

KNOWN: dict[tuple[str, str], Callable[[Any], Way | OpeningWay]] = {
    ("psycopg", "Connection"): drivers.psycopg,
    ("psycopg", "AsyncConnection"): drivers.psycopg_async,
    ("psycopg2", "connection"): drivers.psycopg2,
    ("asyncpg", "Connection"): drivers.asyncpg,
    ("asyncpg", "PoolConnectionProxy"): drivers.asyncpg,
    ("sqlalchemy", "Connection"): sqlalchemy.connection_way,
    ("sqlalchemy", "Session"): sqlalchemy.session_way,
    ("sqlalchemy", "scoped_session"): sqlalchemy.session_way,
    ("sqlalchemy", "AsyncConnection"): sqlalchemy.async_connection_way,
    ("sqlalchemy", "AsyncSession"): sqlalchemy.async_session_way,
    ("sqlalchemy", "async_scoped_session"): sqlalchemy.async_session_way,
    ("django", "BaseDatabaseWrapper"): drivers.django,
    ("django", "ConnectionProxy"): drivers.django,
    ("pymysql", "Connection"): drivers.pymysql,
    ("MySQLdb", "Connection"): drivers.mysqlclient,
    ("aiomysql", "Connection"): drivers.aiomysql,
    ("asyncmy", "Connection"): drivers.asyncmy,
}


class ConnectionUnknown(InputRefused, TypeError):
    """What was given is no connection that we can write on."""


def recognise(connection: Any) -> Way | OpeningWay:
    """How to ask this connection, or an error that lists those we know."""
    for kind in type(connection).__mro__:
        if found := KNOWN.get((kind.__module__.partition(".")[0], kind.__name__)):
            with _explained(connection):
                way = found(connection)
            return way if isinstance(way, OpeningWay) else _suitable(way)
    raise _unknown(type(connection))


async def opened(way: Way | OpeningWay, connection: Any) -> Way:
    if isinstance(way, Way):
        return way
    with _explained(connection):
        return _suitable(await way.opened())


@contextmanager
def _explained(connection: Any) -> Iterator[None]:
    try:
        yield
    except DriverUnknown as error:
        raise _unknown(type(connection), f" over {error}") from error


def _suitable(way: Way) -> Way:
    if way.dialect not in (POSTGRESQL, MARIADB):
        raise ServerUnsuitable(
            "This server is MySQL, which can't say which ids it gave to the rows of an INSERT.",
            "Use MariaDB or PostgreSQL.",
        )
    return way


def _unknown(kind: type[Any], over: str = "") -> ConnectionUnknown:
    packages: dict[str, list[str]] = {}
    for package, name in KNOWN:
        packages.setdefault(package, []).append(name)
    known = "; ".join(f"{package} ({', '.join(names)})" for package, names in packages.items())
    return ConnectionUnknown(
        f"{kind.__module__}.{kind.__qualname__}{over} is no connection that Tidings can write on.",
        f"Give a connection of {known}.",
        field="connection",
    )
