"""What a migrator asks of a database besides the migrations themselves."""

from tidings.db.operations import Operations
from tidings.errors import ServerUnsuitable, TransientFailure


class MigrationOperations(Operations):
    async def wait_for_turn(self, schema: str) -> None:
        row = await self._row("wait_for_turn", schema=schema)
        if row is None or row["got"] == 0:
            raise TransientFailure("Another migration has been running for ten minutes.")

    async def end_turn(self, schema: str) -> None:
        await self._row("end_turn", schema=schema)

    async def schema_exists(self, schema: str) -> bool:
        row = await self._row("schema_exists", schema=schema)
        return bool(row and row["found"])

    async def database_exists(self, database: str) -> bool:
        row = await self._row("database_exists", database=database)
        return bool(row and row["found"])

    async def ledger_exists(self, schema: str) -> bool:
        row = await self._row("ledger_exists", schema=schema)
        return bool(row and row["found"])

    async def applied_steps(self) -> frozenset[tuple[int, str]]:
        return frozenset((row["version"], row["step"]) for row in await self._rows("applied_steps"))

    async def record_step(self, version: int, step: str) -> None:
        await self._run("record_step", version=version, step=step)

    async def record_beginning(self) -> None:
        await self._run("record_beginning")

    async def lock_beginning(self) -> None:
        await self._rows("lock_beginning")

    async def refuse_if_locks_are_ignored(self) -> None:
        """Called while another transaction holds the row: a server that honours SKIP LOCKED shows nothing, at once."""
        try:
            await self._run("wait_briefly")
            seen = await self._rows("skip_beginning")
        except TransientFailure:
            seen = ({"step": "waited"},)
        if seen:
            raise ServerUnsuitable(
                "This server accepts SKIP LOCKED without honouring it, so two workers would send the same job.",
                "Use PostgreSQL 14, MariaDB 10.6, MySQL 8.0.29, or newer ones.",
            )

    async def account_exists(self, name: str) -> bool:
        row = await self._row("account_exists", name=name)
        return bool(row and row["found"])

    async def texts_that_hand_over(self, schema: str, group: str) -> list[str]:
        """PostgreSQL only: what gives the owner group the tables and functions that somebody else has made."""
        return [row["text"] for row in await self._rows("texts_that_hand_over", schema=schema, owner=group)]

    async def granted_elsewhere(self, name: str, schema: str) -> list[str]:
        return [row["place"] for row in await self._rows("granted_elsewhere", name=name, schema=schema)]
