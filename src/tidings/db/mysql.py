"""Speaks to MariaDB and MySQL through asyncmy: connects, sets the session, puts its errors into our words."""

import asyncio
import datetime
import re
from collections.abc import Callable, Sequence
from typing import Any

import asyncmy
from asyncmy.constants.CLIENT import FOUND_ROWS
from asyncmy.constants.FIELD_TYPE import DATETIME
from asyncmy.converters import conversions, convert_datetime
from asyncmy.cursors import DictCursor
from asyncmy.errors import MySQLError

from tidings.db.address import Address
from tidings.db.dialect import LONGEST_IDLE, dialect_of
from tidings.db.mysql_literals import literal_text
from tidings.db.mysql_tls import tls_context
from tidings.db.session import Arguments, Row, Server, act_as
from tidings.db.silence import notice_silence
from tidings.db.statements import Statement
from tidings.errors import (
    DatabaseError,
    DuplicateRow,
    LockTimedOut,
    LoginRefused,
    RoomMissing,
    SchemaError,
    ServerUnreachable,
    ServerUnsuitable,
    StatementDenied,
    StatementFailed,
    TidingsError,
    TransientFailure,
)

OLDEST = {"mariadb": (10, 6), "mysql": (8, 0, 29)}

_TRANSIENT = {
    1213,  # deadlock
    1020,  # record has changed since last read
    1040,  # too many connections
    1203,  # too many connections of this user
}
# This server is no longer the primary, also for transactions: what is asked next is asked of a new session.
_READ_ONLY = {1290, 1792}
_LOCK_TIMED_OUT = 1205
_NO_ROOM = {1021, 1114}
_DUPLICATE = 1062
# As the system calls it, whatever was to be written.
_DEVICE_FULL = "No space left on device"
_LOST = {1053, 1152, 1158, 1159, 1160, 1161, 1317, 1927, 4031}
_REFUSED = {1044, 1045, 1698, 4151}
# No right (1044–1370), no such table, column or routine, a file that can't be written, no time.
_DENIED = {1044, 1142, 1143, 1227, 1370, 1054, 1064, 1146, 1305, 1026, 1030, 1969, 3024}
_NO_SUCH_DATABASE = 1049
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
        # One for all: idle roles come by here many times a second, and a cursor each time takes a fifth of a look.
        self._cursor: Any = _QuietCursor(connection)
        self.server = server
        self.is_lost = False

    async def command(self, text: str) -> None:
        await self._execute(text)

    async def fetch(self, statement: Statement, arguments: Arguments) -> Sequence[Row]:
        rows, _ = await self._execute(literal_text(statement, arguments))
        return rows

    async def fetch_uncommitted(self, statement: Statement, arguments: Arguments) -> Sequence[Row]:
        await self._execute("SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        return await self.fetch(statement, arguments)

    async def run(self, statement: Statement, arguments: Arguments) -> int:
        _, matched = await self._execute(literal_text(statement, arguments))
        return matched

    async def listen(self, channels: Sequence[str], heard: Callable[[str], None], lost: Callable[[], None]) -> None:
        raise StatementFailed(f"{self.server} has no notifications.")

    async def close(self) -> None:
        try:
            await self._connection.ensure_closed()
        except (MySQLError, OSError):
            self.abandon()

    def abandon(self) -> None:
        self.is_lost = True
        self._connection.close()

    async def _execute(self, text: str) -> tuple[Sequence[Row], int]:
        cursor = self._cursor
        try:
            await cursor.execute(text)
            rows: Sequence[Row] = await cursor.fetchall() if cursor.description else ()
            return rows, int(cursor.rowcount)
        except MySQLError as error:
            self.is_lost |= _code(error) in _LOST | _READ_ONLY or _is_of_the_driver(error)
            raise _in_our_words(error) from error
        except (OSError, EOFError, AttributeError) as error:
            # asyncmy answers with an AttributeError when the socket was closed under its feet.
            self.is_lost = True
            raise TransientFailure(f"The connection to the database was lost: {error}") from error
        except asyncio.CancelledError:
            # The answer to the cancelled question is still on the wire.
            self.is_lost = True
            raise


def _code(error: MySQLError) -> int:
    return error.args[0] if error.args and isinstance(error.args[0], int) else 0


def _is_of_the_driver(error: MySQLError) -> bool:
    """The server's own codes start at 1000, those of the client library lie between; asyncmy has some without any."""
    return _code(error) < 1000 or 2000 <= _code(error) < 3000


def _in_our_words(error: MySQLError) -> DatabaseError:
    code, message = _code(error), str(error.args[-1]) if error.args else type(error).__name__
    if code == _LOCK_TIMED_OUT:
        return LockTimedOut(f"The database: {message} ({code})")
    if code in _TRANSIENT | _LOST | _READ_ONLY or _is_of_the_driver(error):
        return TransientFailure(f"The database: {message} ({code})")
    if code in _NO_ROOM or _DEVICE_FULL in message:
        return RoomMissing(f"The database has no room left ({code}): {message}", code=str(code))
    refusal = StatementDenied if code in _DENIED else DuplicateRow if code == _DUPLICATE else StatementFailed
    return refusal(f"The database refused a statement ({code}): {message}", code=str(code))


async def connect(address: Address, *, application: str, schema: str, group: str) -> MysqlSession:
    """Opens one session. With `group` it acts as that role, for installations that have a single login."""
    connection = await _dial(address, application, schema)
    session = MysqlSession(connection, Server("", (), ""))
    try:
        rows, _ = await session._execute("SELECT VERSION() AS version")
        session.server = read_version(rows[0]["version"])
        if address.must_take_writes:
            await _refuse_unless_writable(session, address)
        for text in _SESSION:
            await session.command(text)
        if session.server.dialect == "mariadb":
            await session.command(f"SET SESSION idle_transaction_timeout = {LONGEST_IDLE}")
        if group:
            await act_as(session, f"`{group}`")
    except BaseException:
        session.abandon()
        raise
    return session


async def _dial(address: Address, application: str, schema: str) -> Any:
    try:
        connection: Any = await asyncmy.connect(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password.encode(),
            database=schema or None,
            charset="utf8mb4",
            client_flag=FOUND_ROWS,
            autocommit=True,
            connect_timeout=address.seconds_to_connect,
            conv={**conversions, DATETIME: _utc},
            program_name=application,
            ssl=tls_context(address.options),
        )
        notice_silence(connection._transport)  # which it shows nobody
        return connection
    except MySQLError as error:
        raise _login_failure(error, address, schema) from error
    except (OSError, EOFError, ValueError, AttributeError, RuntimeError) as error:
        # asyncmy answers with a RuntimeError when the socket was closed while it made its settings.
        raise ServerUnreachable(f"The server at {address} can't be reached: {error or type(error).__name__}") from error


async def _refuse_unless_writable(session: MysqlSession, address: Address) -> None:
    rows, _ = await session._execute("SELECT @@global.read_only AS is_read_only")
    if rows[0]["is_read_only"]:
        raise ServerUnreachable(f"The server at {address} takes no writes")


def _login_failure(error: MySQLError, address: Address, schema: str) -> TidingsError:
    code = _code(error)
    if code == _NO_SUCH_DATABASE:
        return SchemaError(f"The server at {address} has no database {schema}.", "Run `tidings migrate` to make it.")
    if code in _REFUSED:
        return LoginRefused(
            f"The server at {address} refused the login: {error.args[-1]}.",
            "Check user, password and database of the URL.",
        )
    if code in _TRANSIENT:
        return _in_our_words(error)
    return ServerUnreachable(f"The server at {address} can't be reached: {error.args[-1]}")


def read_version(said: str) -> Server:
    """Which server this is; refuses those that only look like one of ours."""
    if "tidb" in said.lower():
        raise ServerUnsuitable(
            f"This server is TiDB ({said}): it accepts SKIP LOCKED without honouring it,"
            " so two workers would send the same job.",
            "Use MariaDB 10.6, MySQL 8.0.29, PostgreSQL 14, or newer ones.",
        )
    numbers = re.search(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+)", said)
    if numbers is None:
        raise ServerUnsuitable(f"This server calls itself {said!r}.", "Use MariaDB, MySQL or PostgreSQL.")
    dialect = dialect_of(said).name
    server = Server({"mariadb": "MariaDB", "mysql": "MySQL"}[dialect], tuple(map(int, numbers.groups())), dialect)
    if server.version < OLDEST[dialect]:
        oldest = ".".join(map(str, OLDEST[dialect]))
        raise ServerUnsuitable(f"This server is {server}.", f"Use {server.product} {oldest} or newer.")
    return server


def _utc(value: Any) -> Any:
    moment = convert_datetime(value)
    return moment.replace(tzinfo=datetime.UTC) if isinstance(moment, datetime.datetime) else moment
