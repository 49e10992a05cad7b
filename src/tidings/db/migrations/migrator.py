"""Brings a database to the state this program needs: schema, accounts, tables, rights. Safe to run again, at any time.

PostgreSQL does it in one transaction. MySQL commits every DDL statement by itself, so there each step is repeatable and
recorded when done, and a migration that was killed goes on where it was.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tidings.db.accounts import Account, accounts, bare_schema_text, definer_text, schema_texts
from tidings.db.catalogue.operations import CatalogueOperations
from tidings.db.engine import Engine
from tidings.db.migrations.files import ledger_text, migrations, newest_version, step_text, words
from tidings.db.migrations.operations import MigrationOperations
from tidings.db.names import Names
from tidings.db.rights import PUBLIC, Right, grant_texts, grantees, wanted_rights
from tidings.db.transaction import Transaction
from tidings.errors import SchemaError, StatementFailed
from tidings.flow import OWNER, ROLE_NAMES
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import MigrationStepApplied, RightsChanged

# MySQL can't say IF NOT EXISTS of a column or an index; a step killed before it was recorded finds its own there.
_EXISTS_ALREADY = {"1060", "1061"}


class Migrator:
    """`engine` must be one that may make what is asked for; it is opened without a schema, with room for 3 sessions."""

    def __init__(self, engine: Engine, names: Names) -> None:
        self._engine = engine
        self._names = names
        self._family = engine.dialect.family
        self.dialect = engine.dialect

    async def migrate(self, passwords: Mapping[str, str] | None) -> list[str]:
        """Does all that is missing. With `passwords` (by login) the accounts are made too; returns the new logins."""
        try:
            return await self._migrate(passwords)
        except StatementFailed as error:
            raise SchemaError(
                f"The migration can't be done: {error.what}",
                "Migrate with an account that may make schemas, tables and triggers and grant rights on them.",
            ) from error

    async def _migrate(self, passwords: Mapping[str, str] | None) -> list[str]:
        async with self._turn():
            await self._engine.step(self._refuse_foreign_roles)
            await self._begin_ledger()
            await self._refuse_if_locks_are_ignored()
            made = await self._engine.step(lambda work: self._make_accounts(work, passwords))
            if self._family == "postgresql":
                await self._engine.step(self._apply_missing)
            else:
                async with self._engine.bare_session() as session:
                    await self._apply_missing(Transaction(session))
            await self._engine.step(self._align_rights)
            return made

    async def make_database(self, database: str) -> None:
        """PostgreSQL only, and outside of any transaction: the embedded server starts without our database."""
        async with self._turn(), self._engine.bare_session() as session:
            operations = MigrationOperations.on_session(session, self.dialect)
            if not await operations.database_exists(database):
                await session.command(f'CREATE DATABASE "{database}"')

    async def missing_steps(self) -> list[tuple[int, str]]:
        """What this program needs and the database does not have yet; SchemaError if the database is ahead of us."""
        return self._missing(await self._engine.step(self._applied))

    def _missing(self, applied: frozenset[tuple[int, str]]) -> list[tuple[int, str]]:
        ahead = max((version for version, _ in applied), default=0)
        if ahead > newest_version(self._family):
            raise SchemaError(
                f"The schema is at version {ahead}; this program knows {newest_version(self._family)}.",
                "Use the Tidings release that migrated it, or a newer one.",
            )
        needed = [(m.version, step.name) for m in migrations(self._family) for step in m.steps]
        return [step for step in needed if step not in applied]

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        async with self._engine.bare_session() as session:
            operations = MigrationOperations.on_session(session, self.dialect)
            # By a lock of the session, which a pooler keeps for us no longer than a transaction lasts.
            is_pinned = self._family == "postgresql"
            if is_pinned:
                await session.command("BEGIN")
            await operations.wait_for_turn(self._names.schema)
            try:
                yield
            finally:
                if not session.is_lost:
                    await operations.end_turn(self._names.schema)
                    if is_pinned:
                        await session.command("COMMIT")

    async def _begin_ledger(self) -> None:
        async def begin(work: Transaction) -> None:
            operations = MigrationOperations(work, self.dialect)
            if not await operations.schema_exists(self._names.schema):
                await work.command(bare_schema_text(self._names, self.dialect))
            await self._enter(work)
            await work.command(ledger_text(self.dialect))
            await operations.record_beginning()

        await self._engine.step(begin)

    async def _refuse_if_locks_are_ignored(self) -> None:
        async with self._engine.transaction() as holder, self._engine.transaction() as other:
            for work in (holder, other):
                await self._enter(work)
            await MigrationOperations(holder, self.dialect).lock_beginning()
            await MigrationOperations(other, self.dialect).refuse_if_locks_are_ignored()

    async def _make_accounts(self, work: Transaction, passwords: Mapping[str, str] | None) -> list[str]:
        if passwords is None:
            return []
        wanted = accounts(self._names, self.dialect, passwords)
        try:
            made = [await self._make_account(work, account) for account in wanted]
            for text in schema_texts(self._names, self.dialect):
                await work.command(text)
        except StatementFailed as error:
            raise SchemaError(
                f"The server's roles can't be made: {error.what}",
                "Migrate with an account that may make roles, or let a DBA run what"
                " `tidings migrate --print --roles=print` shows.",
            ) from error
        return [name for name in made if name in passwords]

    async def _make_account(self, work: Transaction, account: Account) -> str:
        """Its name, if it was not there before."""
        operations = MigrationOperations(work, self.dialect)
        is_new = account.make and not await operations.account_exists(account.name)
        for text in ((account.make,) if is_new else ()) + account.after:
            await work.command(text)
        return account.name if is_new else ""

    async def _refuse_foreign_roles(self, work: Transaction) -> None:
        """Also where no accounts are to be made: groups that exist are given rights in any case."""
        operations = MigrationOperations(work, self.dialect)
        for role in ROLE_NAMES:
            group = self._names.group(role)
            if places := await operations.granted_elsewhere(group, self._names.schema):
                raise SchemaError(
                    f"The role {group} of this server already serves another installation ({', '.join(places)}).",
                    "Give this installation a prefix of its own: TIDINGS_PREFIX.",
                )

    async def _applied(self, work: Transaction) -> frozenset[tuple[int, str]]:
        operations = MigrationOperations(work, self.dialect)
        if not await operations.ledger_exists(self._names.schema):
            return frozenset()
        await self._enter(work)
        return await operations.applied_steps()

    async def _apply_missing(self, work: Transaction) -> None:
        missing = self._missing(await self._applied(work))
        operations = MigrationOperations(work, self.dialect)
        await self._act_as_owner(work, operations)
        known = words(self._names, self.dialect, await self._definer(operations))
        for migration in migrations(self._family):
            for step in migration.steps:
                if (migration.version, step.name) in missing:
                    await self._apply(work, migration.version, step.name, step_text(step, known))
                    await operations.record_step(migration.version, step.name)
                    tell(MigrationStepApplied(migration.version, step.name, step.purpose))

    async def _apply(self, work: Transaction, version: int, step: str, text: str) -> None:
        try:
            await work.command(text)
        except StatementFailed as error:
            if error.code in _EXISTS_ALREADY:
                return
            raise SchemaError(
                f"Step {step} of migration {version} failed: {error.what}",
                "Mend the cause and run `tidings migrate` again; it goes on from this step.",
            ) from error

    async def _act_as_owner(self, work: Transaction, operations: MigrationOperations) -> None:
        """PostgreSQL only: what is made belongs to the owner group, not to whoever happens to migrate."""
        group = self._names.group(OWNER)
        if self._family == "postgresql" and await operations.account_exists(group):
            for text in await operations.texts_that_hand_over(self._names.schema, group):
                await work.command(text)
            await work.command(f'SET LOCAL ROLE "{group}"')

    async def _definer(self, operations: MigrationOperations) -> str:
        if self._family == "mysql" and await operations.account_exists(self._names.definer):
            return definer_text(self._names)
        return "CURRENT_USER"

    async def _align_rights(self, work: Transaction) -> None:
        """Grants what the map says and revokes what it does not, from everybody who could act for a role."""
        operations = MigrationOperations(work, self.dialect)
        catalogue = CatalogueOperations(work, self.dialect)
        named = {name for role in ROLE_NAMES for name in grantees(self._names, role, self._engine.server)}
        present = [name for name in sorted(named) if name == PUBLIC or await operations.account_exists(name)]
        has: set[Right] = set()
        for name in present:
            has |= await catalogue.granted_rights(self._names.schema, name)
        wanted = {right for right in wanted_rights(self._names, self._family) if right.grantee in present}
        for text in grant_texts(wanted, has, self._names.schema, self.dialect):
            await work.command(text)
        if wanted != has:
            tell(RightsChanged(granted=len(wanted - has), revoked=len(has - wanted)))

    async def _enter(self, work: Transaction) -> None:
        """Names without a schema mean ours from here on, until the transaction ends or, on MySQL, for good."""
        schema = self.dialect.quoted(self._names.schema)
        await work.command(f"SET LOCAL search_path = {schema}" if self._family == "postgresql" else f"USE {schema}")
