"""Speaks to MariaDB and MySQL through asyncmy: connects, sets the session, puts its errors into our words."""

import asyncio
import datetime
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncmy
from asyncmy.constants.CLIENT import FOUND_ROWS
from asyncmy.constants.FIELD_TYPE import DATETIME
from asyncmy.converters import conversions, convert_datetime, escape_string
from asyncmy.cursors import DictCursor
from asyncmy.errors import Error, MySQLError

from tidings.db.address import Address
from tidings.db.session import Arguments, Row, Server
from tidings.db.statements import Statement
from tidings.errors import (
    DatabaseError,
    LoginRefused,
    ServerUnreachable,
    ServerUnsuitable,
    StatementFailed,
    TransientFailure,
)

OLDEST = {"mariadb": (10, 6), "mysql": (8, 0, 29)}

_TRANSIENT = {
    1205,  # lock wait timeout
    1213,  # deadlock
    1020,  # record has changed since last read
    1040,  # too many connections
    1203,  # too many connections of this user
    1290,  # read-only: this server is no longer the primary
    1792,  # the same, for transactions
}
_LOST = {1053, 1152, 1158, 1159, 1160, 1161, 1317, 1927, 2006, 2013, 2014, 2055, 4031}
_REFUSED = {1044, 1045, 1049, 1698, 4151}
_SESSION = (
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION time_zone = '+00:00',"
    " sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'",
)


class _QuietCursor(DictCursor):
    """asyncmy would ask for the warnings of every INSERT IGNORE in a round trip of its own, only to log them."""

    async def _show_warnings(self, conn: Any) -> None:
        pass


class MysqlSession:
    def __init__(self, connection: Any, server: Server) -> None:
        self._connection = connection
        self.server = server
        self.is_lost = False

    async def command(self, text: str) -> None:
        await self._execute(text)

    async def fetch(self, statement: Statement, arguments: Arguments) -> Sequence[Row]:
        rows, _ = await self._execute(literal_text(statement, arguments))
        return rows

    async def run(self, statement: Statement, arguments: Arguments) -> int:
        _, matched = await self._execute(literal_text(statement, arguments))
        return matched

    async def close(self) -> None:
        with self._our_words():
            if self.is_lost:
                self._connection.close()
            else:
                await self._connection.ensure_closed()

    async def _execute(self, text: str) -> tuple[Sequence[Row], int]:
        with self._our_words():
            async with self._connection.cursor(_QuietCursor) as cursor:
                await cursor.execute(text)
                rows: Sequence[Row] = await cursor.fetchall() if cursor.description else ()
                return rows, int(cursor.rowcount)

    @contextmanager
    def _our_words(self) -> Iterator[None]:
        try:
            yield
        except MySQLError as error:
            self.is_lost |= bool(error.args) and error.args[0] in _LOST
            raise _in_our_words(error) from error
        except (Error, OSError, EOFError, AttributeError) as error:
            # asyncmy answers with an AttributeError when the socket was closed under its feet.
            self.is_lost = True
            raise TransientFailure(f"The connection to the database was lost: {error}") from error
        except asyncio.CancelledError:
            # The answer to the cancelled question is still on the wire.
            self.is_lost = True
            raise


def literal_text(statement: Statement, arguments: Arguments) -> str:
    """The statement with its arguments written into it: this protocol has no arrays."""

    def value(parameter: str) -> str:
        name, _, batch = parameter.partition(".")
        return rows_literal(arguments[name]) if batch else literal(arguments[name])

    return statement.text.format(*(value(parameter) for parameter in statement.parameters))


def rows_literal(rows: Sequence[Sequence[Any]]) -> str:
    return ",".join(f"({','.join(map(literal, row))})" for row in rows)


def literal(value: Any) -> str:
    """One value as SQL text. The session's sql_mode, which we set, keeps the backslash an escape."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | float():
            return repr(value)
        case str():
            return f"'{escape_string(value)}'"
        case bytes():
            return f"x'{value.hex()}'"
        case datetime.datetime():
            return f"'{value.astimezone(datetime.UTC).strftime('%Y-%m-%d %H:%M:%S.%f')}'"
        case list() | tuple() | set() | frozenset():
            return ",".join(map(literal, value)) or "NULL"
    raise TypeError(f"{type(value).__name__} can't be put into SQL")


def _in_our_words(error: MySQLError) -> DatabaseError:
    code = error.args[0] if error.args else 0
    message = error.args[1] if len(error.args) > 1 else str(error)
    if code in _TRANSIENT or code in _LOST:
        return TransientFailure(f"The database: {message} ({code})")
    return StatementFailed(f"The database refused a statement ({code}): {message}", code=str(code))


async def connect(address: Address, *, application: str, schema: str, group: str) -> MysqlSession:
    """Opens one session. With `group` it acts as that role, for installations that have a single login."""
    connection = await _dial(address, application, schema)
    session = MysqlSession(connection, Server("", (), ""))
    try:
        rows, _ = await session._execute("SELECT VERSION() AS version")
        session.server = read_version(rows[0]["version"])
        for text in _SESSION:
            await session.command(text)
        if group:
            await session.command(f"SET ROLE `{group}`")
    except BaseException:
        connection.close()
        raise
    return session


async def _dial(address: Address, application: str, schema: str) -> Any:
    try:
        return await asyncmy.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password,
            database=schema or None,
            charset="utf8mb4",
            client_flag=FOUND_ROWS,
            autocommit=True,
            connect_timeout=10,
            conv={**conversions, DATETIME: _utc},
            program_name=application,
        )
    except MySQLError as error:
        code = error.args[0] if error.args else 0
        if code in _REFUSED:
            raise LoginRefused(
                f"The server at {address} refused the login: {error.args[1]}.",
                "Check user, password and database of the URL.",
            ) from error
        if code in _TRANSIENT:
            raise _in_our_words(error) from error
        raise ServerUnreachable(f"The server at {address} can't be reached: {error.args[-1]}") from error
    except (Error, OSError, EOFError, TimeoutError, AttributeError) as error:
        raise ServerUnreachable(f"The server at {address} can't be reached: {error or type(error).__name__}") from error


def read_version(said: str) -> Server:
    """Which server this is; refuses those that only look like one of ours."""
    if "tidb" in said.lower():
        raise ServerUnsuitable(
            f"This server is TiDB ({said}): it accepts SKIP LOCKED without honouring it, so two workers would send the same job.",
            "Use MariaDB 10.6, MySQL 8.0.29, PostgreSQL 14, or newer ones.",
        )
    numbers = re.search(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)", said)
    if numbers is None:
        raise ServerUnsuitable(f"This server calls itself {said!r}.", "Use MariaDB, MySQL or PostgreSQL.")
    dialect = "mariadb" if "mariadb" in said.lower() else "mysql"
    server = Server({"mariadb": "MariaDB", "mysql": "MySQL"}[dialect], tuple(map(int, numbers.groups())), dialect)
    if server.version < OLDEST[dialect]:
        oldest = ".".join(map(str, OLDEST[dialect]))
        raise ServerUnsuitable(f"This server is {server}.", f"Use {server.product} {oldest} or newer.")
    return server


def _utc(value: Any) -> Any:
    moment = convert_datetime(value)
    return moment.replace(tzinfo=datetime.UTC) if isinstance(moment, datetime.datetime) else moment
