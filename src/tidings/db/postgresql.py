"""Speaks to PostgreSQL through asyncpg: connects, sets the session, puts its errors into our words."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import asyncpg

from tidings.db.address import Address
from tidings.db.session import Arguments, Row, Server, act_as, refuse_naive
from tidings.db.silence import notice_silence
from tidings.db.statements import Statement
from tidings.errors import (
    DatabaseError,
    DatabaseUrlInvalid,
    DuplicateRow,
    LockTimedOut,
    LoginRefused,
    RoomMissing,
    SchemaError,
    ServerUnreachable,
    ServerUnsuitable,
    StatementDenied,
    StatementFailed,
    TransientFailure,
)

OLDEST = (14,)

_TRANSIENT = {
    "40001",  # serialization failure
    "40P01",  # deadlock
    "53300",  # too many connections
    "57P01",  # shutdown by an administrator
    "57P02",  # shutdown after a crash
    "57P03",  # starting up
    "26000",  # a prepared statement is gone: a pooler gave us another session
}
# This server is no longer the primary: what is asked next is asked of a new session, wherever that leads.
_READ_ONLY = "25006"
_LOCK_TIMED_OUT = "55P03"
_NO_ROOM = "53100"
_DUPLICATE = "23505"
_FATAL = {"FATAL", "PANIC"}
# Classes of SQLSTATE: rights and names, resources, interventions, errors of the system.
_DENIED = ("42", "53", "57", "58")
_LOST = (asyncpg.InterfaceError, asyncpg.PostgresConnectionError, asyncpg.InternalClientError, OSError, TimeoutError)


class PostgresqlSession:
    def __init__(self, connection: Any, server: Server) -> None:
        self._connection = connection
        self._closed_by_server = False
        self.server = server

    @property
    def is_lost(self) -> bool:
        return self._closed_by_server or self._connection.is_closed()

    async def command(self, text: str) -> None:
        with self.our_words():
            await self._connection.execute(text)

    async def fetch(self, statement: Statement, arguments: Arguments) -> Sequence[Row]:
        with self.our_words():
            rows: Sequence[Row] = await self._connection.fetch(
                numbered_text(statement), *positional(statement, arguments)
            )
            return rows

    async def fetch_uncommitted(self, statement: Statement, arguments: Arguments) -> Sequence[Row]:
        return await self.fetch(statement, arguments)

    async def run(self, statement: Statement, arguments: Arguments) -> int:
        with self.our_words():
            tag = await self._connection.execute(numbered_text(statement), *positional(statement, arguments))
        count = str(tag).rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def listen(self, channels: Sequence[str], heard: Callable[[str], None], lost: Callable[[], None]) -> None:
        def hear(connection: Any, pid: int, channel: str, payload: str) -> None:
            heard(channel)

        with self.our_words():
            self._connection.add_termination_listener(lambda _: lost())
            for channel in channels:
                await self._connection.add_listener(channel, hear)

    async def close(self) -> None:
        try:
            await self._connection.close(timeout=5)
        except (asyncpg.PostgresError, *_LOST):
            self.abandon()

    def abandon(self) -> None:
        self._connection.terminate()

    @contextmanager
    def our_words(self) -> Iterator[None]:
        try:
            yield
        except asyncpg.PostgresError as error:
            self._closed_by_server |= error.severity_en in _FATAL or error.sqlstate == _READ_ONLY
            raise _in_our_words(error) from error
        except _LOST as error:
            if isinstance(error, ValueError):  # not lost: an argument that can't be put into its parameter
                raise StatementFailed(f"PostgreSQL was not asked: {error}") from error
            self._closed_by_server = True
            raise TransientFailure(f"The connection to PostgreSQL was lost: {error}") from error


@cache
def numbered_text(statement: Statement) -> str:
    return statement.text.format(*(f"${number}" for number in range(1, len(statement.parameters) + 1)))


def positional(statement: Statement, arguments: Arguments) -> list[Any]:
    """The arguments in the order of the statement's parameters; a batch becomes one array for each column."""
    columns: dict[str, Iterator[tuple[Any, ...]]] = {}

    def value(parameter: str) -> Any:
        name, dot, _ = parameter.partition(".")
        if not dot:
            return refuse_naive(arguments[name])
        if name not in columns:
            columns[name] = zip(*arguments[name], strict=True)
        return [refuse_naive(value) for value in next(columns[name])]

    return [value(parameter) for parameter in statement.parameters]


def _in_our_words(error: asyncpg.PostgresError) -> DatabaseError:
    code = error.sqlstate or ""
    # A plan that a migration has made invalid is made anew the next time.
    stale = isinstance(error, asyncpg.InvalidCachedStatementError)
    if code == _LOCK_TIMED_OUT:
        return LockTimedOut(f"PostgreSQL: {error}")
    if code in _TRANSIENT or code == _READ_ONLY or code.startswith("08") or error.severity_en in _FATAL or stale:
        return TransientFailure(f"PostgreSQL: {error}")
    if code == _NO_ROOM:
        return RoomMissing(f"PostgreSQL has no room left: {error}", code=code)
    refusal = StatementDenied if code.startswith(_DENIED) else DuplicateRow if code == _DUPLICATE else StatementFailed
    return refusal(f"PostgreSQL refused a statement ({code}): {_without_rows(error)}", code=code)


def _without_rows(error: asyncpg.PostgresError) -> str:
    """What it says, without the values of the row it is about: those are nobody's business in a log."""
    return str(error).partition("\nDETAIL:  Failing row contains")[0]


# Servers that are reached by way of a pooler, as far as we have met them.
_POOLED: set[str] = set()
_STATEMENTS_KEPT = 100


async def connect(address: Address, *, application: str, schema: str, group: str) -> PostgresqlSession:
    """Opens one session. With `group` it acts as that role, for installations that have a single login."""
    connection = await _dial(address, application)
    session = PostgresqlSession(connection, Server("", (), ""))
    try:
        with session.our_words():
            # Without a name: behind a pooler, it could be that of another statement by the time it is used.
            asked = await connection.prepare("SELECT version() AS version, pg_backend_pid() AS pid", name="")
            who = await asked.fetchrow()
        is_pooled = who["pid"] != connection.get_server_pid()
        if is_pooled and str(address) not in _POOLED:
            _POOLED.add(str(address))
            await session.close()
            return await connect(address, application=application, schema=schema, group=group)
        session.server = read_version(who["version"])
        with session.our_words():
            await _enter(connection, schema, address, is_pooled)
        if group and is_pooled:
            raise _needs_its_own_login(address)
        if group:
            await act_as(session, f'"{group}"')
    except BaseException:
        session.abandon()
        raise
    return session


async def _dial(address: Address, application: str) -> Any:
    try:
        connection = await asyncpg.connect(
            address.url,
            timeout=address.seconds_to_connect,
            server_settings={"application_name": application, "TimeZone": "UTC"},
            # A pooler gives each transaction another session, which knows nothing of statements that were prepared.
            statement_cache_size=0 if str(address) in _POOLED else _STATEMENTS_KEPT,
            **({"target_session_attrs": "read-write"} if address.must_take_writes else {}),
        )
    except asyncpg.PostgresError as error:
        # A connection that broke during the login is one of them, too.
        if error.sqlstate in _TRANSIENT or isinstance(error, _LOST):
            raise TransientFailure(f"PostgreSQL at {address}: {error}") from error
        raise LoginRefused(
            f"PostgreSQL at {address} refused the login: {error}.",
            "Check user, password and database of the URL.",
        ) from error
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise ServerUnreachable(f"PostgreSQL at {address} takes no writes") from error
    except asyncpg.ClientConfigurationError as error:
        raise DatabaseUrlInvalid(f"The options in the URL of {address} can't be used: {error}.") from error
    except (*_LOST, ValueError) as error:
        raise ServerUnreachable(f"PostgreSQL at {address} can't be reached: {error or type(error).__name__}") from error
    notice_silence(connection._transport)  # which it shows nobody
    return connection


def _needs_its_own_login(address: Address) -> ServerUnsuitable:
    return ServerUnsuitable(
        f"PostgreSQL at {address} is reached by way of a pooler, which may give each transaction another session:"
        " a role or a schema that is set in one would be somebody else's.",
        "Give each role the URL of its own login (`tidings migrate --roles=create` makes them,"
        " TIDINGS_DATABASE_URL_<ROLE> names them), or connect to the server itself.",
    )


def read_version(said: str) -> Server:
    """Which server this is; refuses those that only look like PostgreSQL."""
    numbers = re.match(r"PostgreSQL (\d+)(?:\.(\d+))?", said)
    if numbers is None or "-YB-" in said:
        raise ServerUnsuitable(
            f"This server calls itself {said!r}.", "Use PostgreSQL 14 or newer: others do not lock rows as we need."
        )
    server = Server("PostgreSQL", (int(numbers[1]), int(numbers[2] or 0)), "postgresql")
    if server.version < OLDEST:
        raise ServerUnsuitable(f"This server is {server}.", "Use PostgreSQL 14 or newer.")
    return server


async def _enter(connection: Any, schema: str, address: Address, is_pooled: bool) -> None:
    """Sets nothing that our logins bring along by themselves, so that a pooler in transaction mode stays possible."""
    if not schema:
        return
    row = await connection.fetchrow(
        "SELECT current_setting('search_path') AS path, to_regnamespace(quote_ident($1)) AS found", schema
    )
    if row["found"] is None:
        raise SchemaError(f"The database at {address} has no schema {schema}.", "Run `tidings migrate` to make it.")
    if row["path"].split(",")[0].strip(' "') != schema:
        if is_pooled:
            raise _needs_its_own_login(address)
        await connection.execute(f'SET search_path = "{schema}"')
