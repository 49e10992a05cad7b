"""An application with a connection of its own, through every driver that publishing knows.

It is at home in another schema or database than Tidings, and has begun a transaction.
"""

import asyncio
import importlib.util
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

HAS_MYSQLCLIENT = importlib.util.find_spec("MySQLdb") is not None


@dataclass
class Caller:
    """`connection` is what is given to `tidings.publish`. What blocks runs in one thread, as Django wants it."""

    connection: Any
    commit_with: Callable[[], Any]
    rollback_with: Callable[[], Any]
    close_with: Callable[[], Any]
    run_with: Callable[[str], Any]
    is_async: bool = False
    thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    async def do(self, call: Callable[[Any], Any]) -> Any:
        """What the call gives for the connection, awaited if it must be."""
        return await self._called(lambda: call(self.connection))

    async def commit(self) -> None:
        await self._called(self.commit_with)

    async def rollback(self) -> None:
        await self._called(self.rollback_with)

    async def run(self, sql: str) -> None:
        await self._called(lambda: self.run_with(sql))

    async def close(self) -> None:
        await self._called(self.close_with)
        self.thread.shutdown()

    async def _called(self, call: Callable[[], Any]) -> Any:
        if self.is_async:
            answer = call()
            return await answer if inspect.isawaitable(answer) else answer
        return await asyncio.get_running_loop().run_in_executor(self.thread, call)


def parts_of(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    return {
        "host": parts.hostname,
        "port": parts.port,
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
    }


def libpq(url: str) -> dict[str, Any]:
    return {**parts_of(url), "dbname": urlsplit(url).path.strip("/"), "options": "-c search_path=public"}


def _run(cursor_of: Callable[[], Any], sql: str) -> None:
    with cursor_of() as cursor:
        cursor.execute(sql)


async def _run_async(cursor_of: Callable[[], Any], sql: str) -> None:
    async with cursor_of() as cursor:
        await cursor.execute(sql)


def _blocking(connection: Any) -> Caller:
    return Caller(
        connection,
        connection.commit,
        connection.rollback,
        connection.close,
        lambda sql: _run(connection.cursor, sql),
    )


def _awaiting(connection: Any, close: Callable[[], Any]) -> Caller:
    return Caller(
        connection,
        connection.commit,
        connection.rollback,
        close,
        lambda sql: _run_async(connection.cursor, sql),
        is_async=True,
    )


async def psycopg(url: str) -> Caller:
    import psycopg
    from psycopg.rows import dict_row

    return _blocking(await asyncio.to_thread(psycopg.connect, **libpq(url), row_factory=dict_row))


async def psycopg_async(url: str) -> Caller:
    import psycopg

    connection = await psycopg.AsyncConnection.connect(**libpq(url))
    return _awaiting(connection, connection.close)


async def psycopg2(url: str) -> Caller:
    import psycopg2
    from psycopg2.extras import RealDictCursor

    return _blocking(psycopg2.connect(**libpq(url), cursor_factory=RealDictCursor))


async def asyncpg(url: str) -> Caller:
    import asyncpg

    connection = await asyncpg.connect(url, server_settings={"search_path": "public"})
    return await _asyncpg(connection, connection.close)


async def asyncpg_pool(url: str) -> Caller:
    import asyncpg

    pool = await asyncpg.create_pool(url, min_size=1, max_size=1, server_settings={"search_path": "public"})
    return await _asyncpg(await pool.acquire(), pool.terminate)


async def _asyncpg(connection: Any, close: Callable[[], Any]) -> Caller:
    await connection.execute("BEGIN")

    async def end(how: str) -> None:
        await connection.execute(how)
        await connection.execute("BEGIN")

    return Caller(connection, lambda: end("COMMIT"), lambda: end("ROLLBACK"), close, connection.execute, is_async=True)


async def pymysql(url: str) -> Caller:
    import pymysql
    from pymysql.cursors import DictCursor

    return _blocking(pymysql.connect(**parts_of(url), cursorclass=DictCursor))


async def mysqlclient(url: str) -> Caller:
    import MySQLdb

    return _blocking(MySQLdb.connect(**parts_of(url), charset="utf8mb4"))


async def aiomysql(url: str) -> Caller:
    import aiomysql

    connection = await aiomysql.connect(**parts_of(url))
    return _awaiting(connection, connection.ensure_closed)


async def asyncmy(url: str) -> Caller:
    import asyncmy

    connection = await asyncmy.connect(**parts_of(url))
    return _awaiting(connection, connection.ensure_closed)


def sqlalchemy(driver: str, options: dict[str, Any], *, session: bool = False) -> Callable[[str], Awaitable[Caller]]:
    async def caller(url: str) -> Caller:
        import sqlalchemy
        from sqlalchemy.orm import Session
        from sqlalchemy.pool import NullPool

        address = urlsplit(url)._replace(scheme=driver, path=_path(url)).geturl()
        engine = sqlalchemy.create_engine(address, connect_args=options, poolclass=NullPool)
        connection = Session(engine) if session else engine.connect()

        def run(sql: str) -> None:
            connection.execute(sqlalchemy.text(sql))

        return Caller(connection, connection.commit, connection.rollback, connection.close, run)

    return caller


def sqlalchemy_async(
    driver: str, options: dict[str, Any], *, session: bool = False
) -> Callable[[str], Awaitable[Caller]]:
    async def caller(url: str) -> Caller:
        import sqlalchemy
        from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
        from sqlalchemy.pool import NullPool

        address = urlsplit(url)._replace(scheme=driver, path=_path(url)).geturl()
        engine = create_async_engine(address, connect_args=options, poolclass=NullPool)
        connection = AsyncSession(engine) if session else await engine.connect()

        async def run(sql: str) -> None:
            await connection.execute(sqlalchemy.text(sql))

        return Caller(connection, connection.commit, connection.rollback, connection.close, run, is_async=True)

    return caller


def _path(url: str) -> str:
    return urlsplit(url).path if urlsplit(url).scheme == "postgresql" else "/"


async def django(url: str) -> Caller:
    import django
    from django.conf import settings
    from django.db.utils import ConnectionHandler
    from django.utils.connection import ConnectionProxy

    if not settings.configured:
        settings.configure()
        django.setup()
    parts = parts_of(url)
    is_postgresql = urlsplit(url).scheme == "postgresql"
    if not is_postgresql and not HAS_MYSQLCLIENT:
        import pymysql

        pymysql.install_as_MySQLdb()
    handler = ConnectionHandler(
        {
            "default": {
                "ENGINE": f"django.db.backends.{urlsplit(url).scheme}",
                "NAME": urlsplit(url).path.strip("/") if is_postgresql else "information_schema",
                "HOST": parts["host"],
                "PORT": parts["port"],
                "USER": parts["user"],
                "PASSWORD": parts["password"],
                "OPTIONS": {"options": "-c search_path=public"} if is_postgresql else {"charset": "utf8"},
            }
        }
    )
    # As `django.db.connection` is made.
    connection: Any = ConnectionProxy(handler, "default")
    caller = Caller(
        connection,
        lambda: connection.commit(),
        lambda: connection.rollback(),
        lambda: connection.close(),
        lambda sql: _run(connection.cursor, sql),
    )
    await caller.do(lambda _: connection.set_autocommit(False))
    return caller


_PUBLIC = {"options": "-c search_path=public"}
CALLERS: dict[str, dict[str, Callable[[str], Awaitable[Caller]]]] = {
    "postgresql": {
        "psycopg": psycopg,
        "psycopg_async": psycopg_async,
        "psycopg2": psycopg2,
        "asyncpg": asyncpg,
        "asyncpg_pool": asyncpg_pool,
        "sqlalchemy_psycopg": sqlalchemy("postgresql+psycopg", _PUBLIC),
        "sqlalchemy_psycopg2_session": sqlalchemy("postgresql+psycopg2", _PUBLIC, session=True),
        "sqlalchemy_asyncpg": sqlalchemy_async("postgresql+asyncpg", {"server_settings": {"search_path": "public"}}),
        "sqlalchemy_psycopg_async_session": sqlalchemy_async("postgresql+psycopg", _PUBLIC, session=True),
        "django_postgresql": django,
    },
    "mariadb": {
        "pymysql": pymysql,
        "aiomysql": aiomysql,
        "asyncmy": asyncmy,
        "sqlalchemy_pymysql": sqlalchemy("mariadb+pymysql", {}),
        "sqlalchemy_pymysql_session": sqlalchemy("mysql+pymysql", {}, session=True),
        "sqlalchemy_aiomysql": sqlalchemy_async("mysql+aiomysql", {}),
        "sqlalchemy_asyncmy_session": sqlalchemy_async("mysql+asyncmy", {}, session=True),
        "django_mariadb": django,
        **({"mysqlclient": mysqlclient} if HAS_MYSQLCLIENT else {}),
    },
}
ENGINE_OF = {driver: kind for kind, drivers in CALLERS.items() for driver in drivers}


@asynccontextmanager
async def calling(driver: str, url: str) -> AsyncIterator[Caller]:
    caller = await CALLERS[ENGINE_OF[driver]][driver](url)
    try:
        yield caller
    finally:
        await caller.close()
