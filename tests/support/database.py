"""One migrated installation on a private server, as tests see it: every role by its own login, and the admin."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.support.emptying import Emptier
from tests.support.fault_proxy import FaultProxy
from tests.support.pgbouncer import PooledPostgresServer
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.accounts import ALL_ROLES
from tidings.db.catalogue.operations import CatalogueOperations
from tidings.db.engine import Engine, open_engine
from tidings.db.migrations.migrator import Migrator
from tidings.db.names import Names
from tidings.db.rights import Right
from tidings.db.session import Row
from tidings.db.statements import Statement
from tidings.flow import OWNER, ROLE_NAMES
from tidings.tables import tables_of

SERVERS: dict[str, type[PostgresServer] | type[MariaDBServer]] = {
    "postgresql": PostgresServer,
    "mariadb": MariaDBServer,
    "pgbouncer": PooledPostgresServer,
}
_KEPT = {"schema_migrations", "installation", "config_version"}


class Database:
    """What the `engine` fixture gives. Engines that were opened are closed after the test."""

    def __init__(self, server: PostgresServer | MariaDBServer, names: Names | None = None, database: str = "") -> None:
        self.server = server
        self.kind: str = server.engine
        self.family = "postgresql" if self.kind == "postgresql" else "mysql"
        self.names = names or Names()
        self.admin_url = _with_path(server.admin_url, database) if database else server.admin_url
        self.passwords = {self.names.login(role): secrets.token_hex(8) for role in ALL_ROLES}
        self._opened: list[Engine] = []
        self._kept: dict[str, Engine] | None = None
        self._home: asyncio.AbstractEventLoop | None = None

    def url(self, role: str) -> str:
        """The URL of this role's own login."""
        login = self.names.login(role)
        parts = urlsplit(self.admin_url)
        path = parts.path if self.family == "postgresql" else f"/{self.names.schema}"
        place = f"127.0.0.1:{self.server.roles_port}"
        return urlunsplit(parts._replace(netloc=f"{login}:{self.passwords[login]}@{place}", path=path))

    def environment(self) -> dict[str, str]:
        """What a process of the product needs to find this installation, each role by its own login."""
        urls = {f"TIDINGS_DATABASE_URL_{role.upper()}": self.url(role) for role in ALL_ROLES}
        return {**urls, "TIDINGS_SCHEMA": self.names.schema, "TIDINGS_PREFIX": self.names.prefix}

    async def open(self, role: str, through: FaultProxy | None = None, **options: Any) -> Engine:
        """Connects as this role; `admin` is the server's superuser."""
        url = self.admin_url if role == "admin" else self.url(role)
        url = through.url(url) if through else url
        engine = await open_engine(url, owner=role, names=self.names, **options)
        self._opened.append(engine)
        return engine

    async def sql(self, text: str, role: str = OWNER) -> Sequence[Row]:
        """Runs one text in a transaction of its own, as this role."""
        async with self._speaking_as(role) as engine, engine.transaction() as transaction:
            return await transaction.rows(as_it_stands(text))

    def keep_sessions(self) -> None:
        """From now on, until `close()`, each role speaks by one session, which saves most of the time of `sql()`."""
        self._kept, self._home = {}, asyncio.get_running_loop()

    async def keep_no_sessions(self) -> None:
        """For whoever counts what sessions did: it is known for sure of those that have ended."""
        kept, self._kept = self._kept or {}, None
        for engine in kept.values():
            await engine.close()

    @asynccontextmanager
    async def _speaking_as(self, role: str) -> AsyncIterator[Engine]:
        # A session belongs to the loop in which it was made; a test may ask from another one.
        kept = self._kept if asyncio.get_running_loop() is self._home else None
        if kept is not None and role in kept:
            yield kept[role]
            return
        url = self.admin_url if role == "admin" else self.url(role)
        engine = await open_engine(url, owner="test", names=self.names)
        if kept is not None:
            kept.setdefault(role, engine)
        try:
            yield engine
        finally:
            if engine not in (kept or {}).values():
                await engine.close()

    async def value(self, text: str, role: str = OWNER) -> Any:
        (row,) = await self.sql(text, role)
        (value,) = row.values()
        return value

    async def migrate(self, *, make_accounts: bool = True) -> list[str]:
        engine = await open_engine(self.admin_url, owner="migrate", names=self.names, schema="", size=4)
        try:
            return await Migrator(engine, self.names).migrate(self.passwords if make_accounts else None)
        finally:
            await engine.close()

    async def granted_rights(self) -> frozenset[Right]:
        """What the groups of this installation may do, as the server says."""
        catalogue = await self.open("admin")
        has: frozenset[Right] = frozenset()
        for role in ROLE_NAMES:
            group = self.names.group(role)
            has |= await CatalogueOperations.step(
                catalogue, partial(CatalogueOperations.granted_rights, schema=self.names.schema, grantee=group)
            )
        return has

    async def schema_lines(self) -> dict[str, str]:
        """The schema, as the server's catalogue says it."""
        return await CatalogueOperations.step(
            await self.open("admin", schema=""), lambda operations: operations.schema_lines(self.names.schema)
        )

    async def empty(self) -> None:
        """Takes all rows away, past the guards, which only a superuser can."""
        with self.emptier() as emptier:
            emptier.empty()

    def emptier(self) -> Emptier:
        tables = [name for name in tables_of(self.family) if name not in _KEPT]
        return Emptier(self.family, self.admin_url, self.names.schema, tables)

    async def close(self) -> None:
        await self.keep_no_sessions()
        while self._opened:
            await self._opened.pop().close()


_numbers = itertools.count(1)


async def throwaway_installation(server: PostgresServer | MariaDBServer) -> Database:
    """An installation with names of its own on a shared server, which a test may damage."""
    name = f"throwaway{next(_numbers)}"
    installation = Database(server, Names(schema=name, prefix=name))
    await installation.migrate()
    return installation


def as_it_stands(text: str) -> Statement:
    """SQL of a test, whose braces are no words of ours."""
    return Statement("test.sql", text.replace("{", "{{").replace("}", "}}"), ())


def _with_path(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))
