"""The closed list of words in which the engines differ, readable in place in our .sql files.

`{now}` · `{now + :seconds}` · `{lease_until - :seconds}` · `{in :ids}` · `{rows jobs(saga_id bigint, attempt_no int)}`.
Anything more is an override file.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

_SHIFT = re.compile(r"([a-z_.]+)\s*([+-])\s*(:[a-z_]+)")
_IN = re.compile(r"in\s+(:[a-z_]+)")
_ROWS = re.compile(r"rows\s+([a-z_]+)\s*\(([^)]*)\)", re.DOTALL)
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

    def word(self, text: str) -> str:
        """The engine's text for a word; parameters stay `:named` in it. KeyError if there is no such word."""
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
        raise KeyError(text)


def _unnest(rows: RowsWord) -> str:
    arrays = ", ".join(f":{rows.parameter}.{name}::{kind}[]" for name, kind in rows.columns)
    return f"SELECT * FROM unnest({arrays})"


POSTGRESQL = Dialect(
    name="postgresql",
    family="postgresql",
    files=("operations.sql",),
    begin="BEGIN ISOLATION LEVEL READ COMMITTED",
    # Not clock_timestamp(): it is volatile, and a condition on it is no index condition.
    now="statement_timestamp()",
    shift=lambda base, sign, seconds: f"({base} {sign} make_interval(secs => {seconds}))",
    is_in=lambda parameter: f"= ANY ({parameter})",
    rows=_unnest,
)


def _shift_by_microseconds(base: str, sign: str, seconds: str) -> str:
    return f"({base} {sign} INTERVAL ROUND({seconds} * 1000000) MICROSECOND)"


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
)

DIALECTS = {dialect.name: dialect for dialect in (POSTGRESQL, MARIADB, MYSQL)}
