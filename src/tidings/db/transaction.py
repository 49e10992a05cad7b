"""An open transaction and its savepoints, the same on every engine."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from tidings.db.session import Row, Session
from tidings.db.statements import Statement
from tidings.errors import DatabaseError, StatementFileInvalid, TransientFailure


class Transaction:
    """An open transaction, in which named statements are run.

    A statement that failed has spoilt it: nothing more is run or committed, unless a savepoint undoes the failure.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._savepoints = 0
        self._failure: DatabaseError | None = None

    async def rows(self, statement: Statement, /, **arguments: Any) -> Sequence[Row]:
        _check(statement, arguments)
        if _has_no_rows(statement, arguments):
            return ()
        with self._spoilt_by_failure():
            return await self._session.fetch(statement, _ascending(statement, arguments))

    async def rows_uncommitted(self, statement: Statement, /, **arguments: Any) -> Sequence[Row]:
        """The rows of open transactions too, where the engine shows them."""
        _check(statement, arguments)
        with self._spoilt_by_failure():
            return await self._session.fetch_uncommitted(statement, arguments)

    async def row(self, statement: Statement, /, **arguments: Any) -> Row | None:
        rows = await self.rows(statement, **arguments)
        return rows[0] if rows else None

    async def run(self, statement: Statement, /, **arguments: Any) -> int:
        """How many rows matched."""
        _check(statement, arguments)
        if _has_no_rows(statement, arguments):
            return 0
        with self._spoilt_by_failure():
            return await self._session.run(statement, _ascending(statement, arguments))

    async def command(self, text: str) -> None:
        """Runs text of ours that is made, not written: DDL and grants."""
        with self._spoilt_by_failure():
            await self._session.command(text)

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        """What fails inside is undone; what was done before it stays. A transient error undoes everything."""
        self._savepoints += 1
        name = f"s{self._savepoints}"
        await self.command(f"SAVEPOINT {name}")
        try:
            yield
            await self.command(f"RELEASE SAVEPOINT {name}")
        except BaseException:
            # After a deadlock MySQL has no savepoint any more, and not even a transaction.
            if not isinstance(self._failure, TransientFailure) and not self._session.is_lost:
                await self._session.command(f"ROLLBACK TO SAVEPOINT {name}")
                self._failure = None
            raise

    def refuse_if_spoilt(self) -> None:
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def _spoilt_by_failure(self) -> Iterator[None]:
        self.refuse_if_spoilt()
        try:
            yield
        except DatabaseError as error:
            self._failure = error
            raise


def _check(statement: Statement, arguments: dict[str, Any]) -> None:
    if statement.arguments != arguments.keys():
        raise StatementFileInvalid(
            f"{statement.name} takes {sorted(statement.arguments)} and was given {sorted(arguments)}."
        )


def _has_no_rows(statement: Statement, arguments: dict[str, Any]) -> bool:
    """Whether it takes a batch, and is given an empty one: then there is nothing to ask."""
    for parameter in statement.parameters:
        name, dot, _ = parameter.partition(".")
        if dot:
            return len(arguments[name]) == 0
    return False


def _ascending(statement: Statement, arguments: dict[str, Any]) -> dict[str, Any]:
    """The lists in which the statement looks something up ascend, and what goes with them comes along."""
    found = dict(arguments)
    for keys in {keys for keys, _ in statement.picks}:
        order = sorted(range(len(arguments[keys])), key=arguments[keys].__getitem__)
        for name in {keys, *(values for of, values in statement.picks if of == keys)}:
            found[name] = [arguments[name][at] for at in order]
    return found
