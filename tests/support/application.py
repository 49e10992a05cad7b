"""An application with a login of its own beside Tidings, as documents and examples speak of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from tests.support.database import Database

APP, PASSWORD, SHOP = "app", "secret", "shop"
MAKE = {
    "postgresql": (f"CREATE ROLE {APP} LOGIN PASSWORD '{PASSWORD}'", f"CREATE SCHEMA {APP} AUTHORIZATION {APP}"),
    "mysql": (
        f"CREATE DATABASE {SHOP}",
        f"CREATE USER {APP}@'%' IDENTIFIED BY '{PASSWORD}'",
        f"GRANT ALL ON {SHOP}.* TO {APP}@'%'",
    ),
}
REMOVE = {
    "postgresql": (f"DROP OWNED BY {APP} CASCADE", f"DROP ROLE {APP}"),
    "mysql": (f"DROP DATABASE {SHOP}", f"DROP USER {APP}@'%'", "DROP ROLE IF EXISTS app_tidings"),
}


@dataclass
class Application:
    """`url` is that of its own login."""

    database: Database
    url: str

    async def sql(self, text: str, url: str) -> None:
        """Plainly, as a client would: each statement in a transaction of its own unless it begins one."""
        await (_on_postgresql if self.database.family == "postgresql" else _on_mariadb)(text, url)


async def _on_postgresql(text: str, url: str) -> None:
    import psycopg

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(text.encode())


async def _on_mariadb(text: str, url: str) -> None:
    import pymysql
    from pymysql.constants import CLIENT

    def run() -> None:
        parts = urlsplit(url)
        connection = pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=parts.username,
            password=parts.password or "",
            database=parts.path.strip("/") or None,
            client_flag=CLIENT.MULTI_STATEMENTS,
            autocommit=True,
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(text)
            while cursor.nextset():
                pass

    await asyncio.to_thread(run)


@asynccontextmanager
async def application_beside(engine: Database) -> AsyncIterator[Application]:
    """Its login is there, and has no right to anything of ours yet."""
    parts = urlsplit(engine.admin_url)
    path = parts.path if engine.family == "postgresql" else f"/{SHOP}"
    url = urlunsplit(parts._replace(netloc=f"{APP}:{PASSWORD}@{parts.hostname}:{parts.port}", path=path))
    app = Application(engine, url)
    for text in MAKE[engine.family]:
        await app.sql(text, engine.admin_url)
    try:
        yield app
    finally:
        for text in REMOVE[engine.family]:
            await app.sql(text, engine.admin_url)
