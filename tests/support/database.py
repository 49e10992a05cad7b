"""One migrated installation on a private server, as tests see it: every role by its own login, and the admin."""

import itertools
import secrets
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

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

    def url(self, role: str) -> str:
        """The URL of this role's own login."""
        login = self.names.login(role)
        parts = urlsplit(self.admin_url)
        path = parts.path if self.family == "postgresql" else f"/{self.names.schema}"
        return urlunsplit(parts._replace(netloc=f"{login}:{self.passwords[login]}@127.0.0.1:{parts.port}", path=path))

    def environment(self) -> dict[str, str]:
        """What a process of the product needs to find this installation, each role by its own login."""
        urls = {f"TIDINGS_DATABASE_URL_{role.upper()}": self.url(role) for role in ALL_ROLES}
        return {**urls, "TIDINGS_SCHEMA": self.names.schema, "TIDINGS_PREFIX": self.names.prefix}

    async def open(self, role: str, **options: Any) -> Engine:
        """Connects as this role; `admin` is the server's superuser."""
        url = self.admin_url if role == "admin" else self.url(role)
        engine = await open_engine(url, owner=role, names=self.names, **options)
        self._opened.append(engine)
        return engine

    async def sql(self, text: str, role: str = OWNER) -> Sequence[Row]:
        """Runs one text in a transaction of its own, as this role."""
        engine = await open_engine(self.admin_url if role == "admin" else self.url(role), owner=role, names=self.names)
        try:
            async with engine.transaction() as transaction:
                return await transaction.rows(Statement("test.sql", _literal(text), ()))
        finally:
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
                catalogue, lambda operations, group=group: operations.granted_rights(self.names.schema, group)
            )
        return has

    async def empty(self) -> None:
        """Takes all rows away, past the guards, which only a superuser can."""
        engine = await open_engine(self.admin_url, owner="empty", names=self.names)
        tables = [name for name in tables_of(self.family) if name not in _KEPT]
        async with engine.bare_session() as session:
            if self.family == "postgresql":
                await session.command("SET session_replication_role = replica")
                await session.command(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY")
            else:
                await session.command("SET FOREIGN_KEY_CHECKS = 0")
                for table in tables:
                    await session.command(f"TRUNCATE {table}")
        await engine.close()

    async def close(self) -> None:
        while self._opened:
            await self._opened.pop().close()


_numbers = itertools.count(1)


async def throwaway_installation(server: PostgresServer | MariaDBServer) -> Database:
    """An installation with names of its own on a shared server, which a test may damage."""
    name = f"throwaway{next(_numbers)}"
    installation = Database(server, Names(schema=name, prefix=name))
    await installation.migrate()
    return installation


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _with_path(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))
