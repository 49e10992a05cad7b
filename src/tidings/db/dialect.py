"""The closed list of words in which the engines differ, readable in place in our .sql files.

`{now}` · `{now + :seconds}` · `{lease_until - :seconds}` · `{in :ids}` · `{rows jobs(saga_id bigint, attempt_no int)}`
· `{table events}` · `{pick :delays double precision for id in :ids}`, the value at the same place in another list. The
list in which is looked ascends, so that the server halves it: one by one, long batches would cost by their square.
Anything more is an override file. There, on MySQL alone, `{each lanes(id, room): SELECT … = lanes.id LIMIT lanes.room}`
stands for the LATERAL that it lacks: the text once for each row, with UNION ALL between; and `{any ranges(lo, hi): …}`
for a condition, with OR between.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

_SHIFT = re.compile(r"([a-z_.]+)\s*([+-])\s*(:[a-z_]+)")
_IN = re.compile(r"in\s+(:[a-z_]+)")
_ROWS = re.compile(r"rows\s+([a-z_]+)\s*\(([^)]*)\)", re.DOTALL)
_TABLE = re.compile(r"table\s+([a-z_]+)")
_PICK = re.compile(r"pick\s+(:[a-z_]+)\s+([a-z][a-z0-9 ]*?)\s+for\s+([a-z_.]+)\s+in\s+(:[a-z_]+)")
_COLUMN = re.compile(r"\s*([a-z_]+)\s+([a-z][a-z0-9_ ]*?)\s*")


@dataclass(frozen=True)
class RowsWord:
    """A batch of rows: its parameter, and the name and type of each column."""

    parameter: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Dialect:
    """How one engine says each word; `files` are the overrides it reads, later ones win."""

    name: str
    family: str
    files: tuple[str, ...]
    begin: str
    now: str
    shift: Callable[[str, str, str], str]
    is_in: Callable[[str], str]
    rows: Callable[[RowsWord], str]
    pick: Callable[[str, str, str, str], str]
    quote: str
    lock_patience: Callable[[float], str]
    notify: Callable[[str], str] | None = None

    def word(self, text: str, schema: str = "") -> str:
        """The engine's text for a word; parameters stay `:named` in it. KeyError if there is no such word.

        With `schema` tables are named by it, for sessions that are at home in another one.
        """
        if text == "now":
            return self.now
        if match := _SHIFT.fullmatch(text):
            base, sign, seconds = match.groups()
            return self.shift(self.now if base == "now" else base, sign, seconds)
        if match := _IN.fullmatch(text):
            return self.is_in(match[1])
        if match := _ROWS.fullmatch(text):
            columns = [_COLUMN.fullmatch(column) for column in match[2].split(",")]
            if all(columns):
                return self.rows(RowsWord(match[1], tuple((column[1], column[2]) for column in columns if column)))
        if match := _PICK.fullmatch(text):
            return self.pick(*match.groups())
        if match := _TABLE.fullmatch(text):
            return f"{self.quoted(schema)}.{match[1]}" if schema else match[1]
        raise KeyError(text)

    def quoted(self, name: str) -> str:
        return f"{self.quote}{name}{self.quote}"


def picked(text: str) -> tuple[str, str] | None:
    """Of a word that picks: the list in which is looked, and the one of which the value is."""
    match = _PICK.fullmatch(text)
    return match and (match[4][1:], match[1][1:])


def _unnest(rows: RowsWord) -> str:
    arrays = ", ".join(f":{rows.parameter}.{name}::{kind}[]" for name, kind in rows.columns)
    return f"SELECT * FROM unnest({arrays})"


# Seconds. No transaction of ours waits for anything but the server: whoever says nothing for so long inside of one is
# frozen or cut off, and its locks must not hold up others until they lose their leases. MySQL has nothing like it.
LONGEST_IDLE = 10

POSTGRESQL = Dialect(
    name="postgresql",
    family="postgresql",
    files=("operations.sql",),
    # Every statement of ours comes by an index. Without these the planner reads whole tables that it does not know:
    # before their first ANALYZE, or by a plan that a session made while they were small. Older versions take what is
    # off for very dear, and would compile the plan for that.
    begin="BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off;"
    f" SET LOCAL jit = off; SET LOCAL idle_in_transaction_session_timeout = '{LONGEST_IDLE}s'",
    # Not clock_timestamp(): it is volatile, and a condition on it is no index condition.
    now="statement_timestamp()",
    shift=lambda base, sign, seconds: f"({base} {sign} make_interval(secs => {seconds}))",
    is_in=lambda parameter: f"= ANY ({parameter})",
    rows=_unnest,
    pick=lambda values, kind, key, keys: f"({values}::{kind}[])[width_bucket({key}, {keys}::bigint[])]",
    quote='"',
    lock_patience=lambda seconds: f"SET LOCAL lock_timeout = {max(1, round(seconds * 1000))}",
    notify=lambda channel: f'NOTIFY "{channel}"',
)


def _shift_by_microseconds(base: str, sign: str, seconds: str) -> str:
    return f"({base} {sign} INTERVAL ROUND({seconds} * 1000000) MICROSECOND)"


def _element(values: str, kind: str, key: str, keys: str) -> str:
    """ELT gives text, and a number compared with text is compared as a float: 63 bits would lose their last ones."""
    element = f"ELT(INTERVAL({key}, {keys}), {values})"
    return f"CAST({element} AS SIGNED)" if kind == "bigint" else element


MARIADB = Dialect(
    name="mariadb",
    family="mysql",
    files=("operations.sql", "operations.mysql.sql", "operations.mariadb.sql"),
    # The session's own level is READ COMMITTED: here BEGIN can't say it.
    begin="BEGIN",
    now="UTC_TIMESTAMP(6)",
    shift=_shift_by_microseconds,
    is_in=lambda parameter: f"IN ({parameter})",
    rows=lambda rows: f"VALUES :{rows.parameter}.*",
    pick=_element,
    quote="`",
    # Whole seconds, and for the rest of the session: there is nothing shorter.
    lock_patience=lambda seconds: f"SET SESSION innodb_lock_wait_timeout = {max(1, round(seconds))}",
)

MYSQL = Dialect(
    name="mysql",
    family="mysql",
    files=("operations.sql", "operations.mysql.sql"),
    begin=MARIADB.begin,
    now=MARIADB.now,
    shift=_shift_by_microseconds,
    is_in=MARIADB.is_in,
    # MariaDB does not know the word ROW, and MySQL wants it wherever VALUES is not that of an INSERT.
    rows=lambda rows: f"VALUES :{rows.parameter}.row",
    pick=MARIADB.pick,
    quote=MARIADB.quote,
    lock_patience=MARIADB.lock_patience,
)

DIALECTS = {dialect.name: dialect for dialect in (POSTGRESQL, MARIADB, MYSQL)}


def dialect_of(version: str) -> Dialect:
    """Whether a server of the MySQL family is MariaDB, from what it says of its version."""
    return MARIADB if "mariadb" in version.lower() else MYSQL
