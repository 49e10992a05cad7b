"""One role's way to its database: sessions kept ready, transactions, and steps that are run again when the server asks.

A step is a whole transaction; a transient error re-runs all of it, which is safe because decisions are pure.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tidings.db import mysql, postgresql
from tidings.db.address import Address, read_address
from tidings.db.dialect import DIALECTS, Dialect
from tidings.db.names import Names
from tidings.db.session import Row, Server, Session, batch_rows
from tidings.db.statements import Statement
from tidings.errors import OutcomeUnknown, ServerUnreachable, StatementFileInvalid, TransientFailure
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import ServerAwaited, StepRetried

T = TypeVar("T")
_CONNECTORS: dict[str, Any] = {"postgresql": postgresql.connect, "mysql": mysql.connect}
_ATTEMPTS = 6
_FIRST_PAUSE = 0.05


class Transaction:
    """An open transaction, in which named statements are run."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._savepoints = 0

    async def rows(self, statement: Statement, /, **arguments: Any) -> Sequence[Row]:
        _check(statement, arguments)
        if batch_rows(statement, arguments) == 0:
            return ()
        return await self._session.fetch(statement, arguments)

    async def row(self, statement: Statement, /, **arguments: Any) -> Row | None:
        rows = await self.rows(statement, **arguments)
        return rows[0] if rows else None

    async def run(self, statement: Statement, /, **arguments: Any) -> int:
        """How many rows matched."""
        _check(statement, arguments)
        if batch_rows(statement, arguments) == 0:
            return 0
        return await self._session.run(statement, arguments)

    async def command(self, text: str) -> None:
        """Runs text of ours that is made, not written: DDL and grants."""
        await self._session.command(text)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """What fails inside is undone; what was done before it stays."""
        self._savepoints += 1
        name = f"s{self._savepoints}"
        await self._session.command(f"SAVEPOINT {name}")
        try:
            yield
        except BaseException:
            if not self._session.is_lost:
                await self._session.command(f"ROLLBACK TO SAVEPOINT {name}")
            raise
        await self._session.command(f"RELEASE SAVEPOINT {name}")


class Engine:
    """At most `size` sessions at once, made when needed; a session that was lost is never used again."""

    def __init__(self, connect: Callable[[], Awaitable[Session]], first: Session, *, owner: str, size: int) -> None:
        self._connect = connect
        self._idle: list[Session] = [first]
        self._room = asyncio.Semaphore(size)
        self.owner = owner
        self.server: Server = first.server
        self.dialect: Dialect = DIALECTS[first.server.dialect]

    async def step(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in one transaction, and all of it again after a transient error."""
        for attempt in range(1, _ATTEMPTS):
            try:
                async with self.transaction() as transaction:
                    return await work(transaction)
            except TransientFailure as error:
                tell(StepRetried(self.owner, attempt, error.what))
                await asyncio.sleep(random.uniform(0.5, 1) * _FIRST_PAUSE * 2**attempt)
        async with self.transaction() as transaction:
            return await work(transaction)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """One transaction, not run again. A connection lost in COMMIT is `OutcomeUnknown`."""
        async with self._room:
            session = await self._begun()
            try:
                yield Transaction(session)
                await self._commit(session)
            except BaseException:
                await self._undo(session)
                raise
            finally:
                await self._put_back(session)

    @asynccontextmanager
    async def bare_session(self) -> AsyncIterator[Session]:
        """A session without a transaction, for what must not or need not have one."""
        async with self._room:
            session = self._idle.pop() if self._idle else await self._connect()
            try:
                yield session
            finally:
                await self._put_back(session)

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def _begun(self) -> Session:
        begin = f"/* {self.owner}.begin */ {self.dialect.begin}"
        while self._idle:
            session = self._idle.pop()
            try:
                await session.command(begin)
                return session
            except TransientFailure:
                # It was lost while idle. Nothing has been asked yet, so a new one may take its place.
                await _drop(session)
        session = await self._connect()
        await session.command(begin)
        return session

    async def _commit(self, session: Session) -> None:
        try:
            await session.command(f"/* {self.owner}.commit */ COMMIT")
        except TransientFailure as error:
            if session.is_lost:
                raise OutcomeUnknown(
                    f"The connection was lost in COMMIT; whether it took effect is not known. {error.what}"
                ) from error
            raise

    async def _undo(self, session: Session) -> None:
        if session.is_lost:
            return
        try:
            await session.command("ROLLBACK")
        except BaseException:
            await _drop(session)
            raise

    async def _put_back(self, session: Session) -> None:
        if session.is_lost:
            await _drop(session)
        else:
            self._idle.append(session)


async def open_engine(
    url: str,
    *,
    owner: str,
    names: Names,
    group: str = "",
    schema: str | None = None,
    patience: float = 0,
    size: int = 2,
) -> Engine:
    """Connects as `owner` (a role's name), trying for `patience` seconds while nobody answers.

    With `group` each session acts as that role. `schema` defaults to the installation's own.
    """
    address = read_address(url)
    used = names.schema if schema is None else schema

    async def connect() -> Session:
        return await _patiently(address, patience, application=f"tidings {owner}", schema=used, group=group)

    return Engine(connect, await connect(), owner=owner, size=size)


async def _patiently(address: Address, patience: float, **how: str) -> Session:
    started = time.monotonic()
    pause = _FIRST_PAUSE
    while True:
        try:
            session: Session = await _CONNECTORS[address.family](address, **how)
            return session
        except (ServerUnreachable, TransientFailure) as error:
            waited = time.monotonic() - started
            if waited + pause > patience:
                raise _gave_up(address, error, waited) from error
            tell(ServerAwaited(str(address), error.what, round(waited, 1)))
        await asyncio.sleep(random.uniform(0.5, 1) * pause)
        pause = min(pause * 2, 2)


def _gave_up(address: Address, error: ServerUnreachable | TransientFailure, waited: float) -> ServerUnreachable:
    tried = f" (tried for {waited:.0f} s)" if waited >= 1 else ""
    return ServerUnreachable(
        f"{error.what}{tried}", f"Is a server running at {address.host}:{address.port}, and does it let us in?"
    )


async def _drop(session: Session) -> None:
    session.is_lost = True
    await session.close()


def _check(statement: Statement, arguments: dict[str, Any]) -> None:
    if statement.arguments != arguments.keys():
        raise StatementFileInvalid(
            f"{statement.name} takes {sorted(statement.arguments)} and was given {sorted(arguments)}."
        )
