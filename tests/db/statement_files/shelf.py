"""The clerk's own tables, in a schema of their own on the shared server."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from tests.db.statement_files.operations import ClerkOperations
from tests.support.database import Database
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.engine import Engine, open_engine
from tidings.db.names import Names
from tidings.db.session import Row

_TABLES = (
    "CREATE TABLE keepsakes (id bigint PRIMARY KEY, flag boolean, whole bigint, fraction double precision,"
    " words {text}, raw {bytes}, moment {instant}){options}",
    "CREATE TABLE orders (id bigint PRIMARY KEY, amount bigint NOT NULL, status varchar(10) NOT NULL DEFAULT 'open',"
    " settled_at {instant}){options}",
    "CREATE TABLE receipts (order_id bigint NOT NULL, amount bigint NOT NULL){options}",
    "CREATE TABLE till (total bigint NOT NULL){options}",
    "INSERT INTO till VALUES (0)",
)
_WORDS = {
    "postgresql": {"text": "text", "bytes": "bytea", "instant": "timestamptz", "options": ""},
    "mysql": {
        "text": "longtext",
        "bytes": "longblob",
        "instant": "datetime(6)",
        "options": " ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_nopad_bin",
    },
}


class Shelf(Database):
    """A schema with the clerk's tables, and nothing of the product in it."""

    def __init__(self, server: PostgresServer | MariaDBServer) -> None:
        super().__init__(server, Names(schema="shelf", prefix="shelf"))

    async def make(self) -> None:
        engine = await open_engine(self.admin_url, owner="carpenter", names=self.names, schema="")
        async with engine.bare_session() as session:
            await session.command(f"DROP SCHEMA IF EXISTS shelf{' CASCADE' if self.family == 'postgresql' else ''}")
            await session.command("CREATE SCHEMA shelf")
            await session.command("SET search_path = shelf" if self.family == "postgresql" else "USE shelf")
            for text in _TABLES:
                await session.command(text.format(**_WORDS[self.family]))
        await engine.close()

    async def clerk(self, url: str = "", **options: Any) -> Engine:
        """An engine of the clerk, by way of this URL."""
        engine = await open_engine(url or self.admin_url, owner="clerk", names=self.names, **options)
        self._opened.append(engine)
        return engine

    async def sql(self, text: str, role: str = "admin") -> Sequence[Row]:
        return await super().sql(text, role)

    async def value(self, text: str, role: str = "admin") -> Any:
        return await super().value(text, role)


async def opened_shelf(server: PostgresServer | MariaDBServer) -> AsyncIterator[Shelf]:
    """Fixture function: the clerk's empty tables; engines that were opened are closed after the test."""
    shelf = Shelf(server)
    await shelf.make()
    yield shelf
    await shelf.close()


async def ask(engine: Engine, name: str, **arguments: Any) -> Sequence[Row]:
    """One statement of the clerk in a step of its own."""
    return await ClerkOperations.step(engine, lambda clerk: clerk.ask(name, **arguments))


async def do(engine: Engine, name: str, **arguments: Any) -> int:
    return await ClerkOperations.step(engine, lambda clerk: clerk.do(name, **arguments))
