"""The statements of one role, bound to one open transaction: the only thing of the database that a step can reach."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, TypeVar

from tidings.db.asking import Flow
from tidings.db.dialect import Dialect
from tidings.db.engine import Engine
from tidings.db.session import Row, Session
from tidings.db.statements import load_statements
from tidings.db.transaction import Transaction
from tidings.errors import StatementDenied, StatementFailed
from tidings.telemetry.asking import asked

T = TypeVar("T")


class Operations:
    """Subclasses live beside their `operations.sql` and have one method for each thing the role does."""

    def __init__(self, transaction: Transaction, dialect: Dialect) -> None:
        self._transaction = transaction
        self._dialect = dialect
        self._statements = load_statements(type(self).__module__.rpartition(".")[0], dialect)

    @classmethod
    async def step(cls, engine: Engine, work: Callable[[Self], Awaitable[T]]) -> T:
        """Runs `work` in one transaction, and all of it again after a transient error."""
        return await engine.step(lambda transaction: work(cls(transaction, engine.dialect)))

    @classmethod
    async def careful_step(cls, engine: Engine, work: Callable[[Self, bool], Awaitable[T]]) -> T:
        """A step of a few statements; if the database refuses something of it, again and carefully: by halves."""
        try:
            return await cls.step(engine, lambda operations: work(operations, False))
        except StatementDenied:
            raise  # whatever the rows are
        except StatementFailed:
            return await cls.step(engine, lambda operations: work(operations, True))

    @classmethod
    async def alone(cls, engine: Engine, work: Callable[[Self], Awaitable[T]]) -> T:
        """A single statement that needs no transaction; run again after a transient error, so it must bear that."""
        return await engine.alone(lambda transaction: work(cls(transaction, engine.dialect)))

    @classmethod
    def on_session(cls, session: Session, dialect: Dialect) -> Self:
        """Statements outside of any transaction, each committed by itself."""
        return cls(Transaction(session), dialect)

    async def wait_at_most(self, seconds: float) -> None:
        """A row that somebody else's transaction holds for longer is LockTimedOut; MySQL keeps that for the session."""
        await self._transaction.command(self._dialect.lock_patience(seconds))

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """What fails inside is undone; what was done before it stays."""
        return self._transaction.savepoint()

    async def _rows(self, name: str, /, **arguments: Any) -> Sequence[Row]:
        return await self._transaction.rows(self._statements[name], **arguments)

    async def _rows_uncommitted(self, name: str, /, **arguments: Any) -> Sequence[Row]:
        return await self._transaction.rows_uncommitted(self._statements[name], **arguments)

    async def _row(self, name: str, /, **arguments: Any) -> Row | None:
        return await self._transaction.row(self._statements[name], **arguments)

    async def _run(self, name: str, /, **arguments: Any) -> int:
        return await self._transaction.run(self._statements[name], **arguments)

    async def _answer(self, flow: Flow[T]) -> T:
        """Runs what the flow asks for until it is done; what it came to."""
        try:
            ask = next(flow)
            while True:
                ask = flow.send(await self._rows(ask.statement, **ask.arguments))
        except StopIteration as end:
            result: T = end.value
            return result


class AuditedOperations(Operations):
    """Of a role that has a statement `audit`: what somebody did is written down by the transaction that did it."""

    async def audit(self, actor: str, action: str, subject: str, detail: Mapping[str, Any]) -> None:
        await self._run(
            "audit", actor=actor, action=action, subject=subject, detail=json.dumps(dict(detail)), **asked()
        )
