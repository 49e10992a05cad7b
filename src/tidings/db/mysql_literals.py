"""Values as SQL text, for MariaDB and MySQL: their protocol has no arrays. What is not known is refused."""

import datetime
import math
from collections.abc import Sequence
from typing import Any

from asyncmy.converters import escape_string

from tidings.db.session import Arguments, refuse_naive
from tidings.db.statements import Statement

_BETWEEN_ROWS = {"each": " UNION ALL ", "any": " OR "}


def literal_text(statement: Statement, arguments: Arguments) -> str:
    """The statement with its arguments written into it."""

    def value(parameter: str) -> str:
        name, _, batch = parameter.partition(".")
        if batch in _BETWEEN_ROWS:
            texts = (statement.each.format(*map(literal, row)) for row in arguments[name])
            return _BETWEEN_ROWS[batch].join(f"({text})" for text in texts)
        return _rows_literal(arguments[name], batch) if batch else literal(arguments[name])

    return statement.text.format(*(value(parameter) for parameter in statement.parameters))


def _rows_literal(rows: Sequence[Sequence[Any]], batch: str) -> str:
    word = "ROW" if batch == "row" else ""
    return ",".join(f"{word}({','.join(map(literal, row))})" for row in rows)


def literal(value: Any) -> str:
    """One value as SQL text. The session's sql_mode, which we set, keeps the backslash an escape."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return format(value, "d")
        case float():
            return _float_literal(value)
        case str():
            return f"'{escape_string(value)}'"
        case bytes():
            return f"x'{value.hex()}'"
        case datetime.datetime():
            moment = refuse_naive(value).astimezone(datetime.UTC).replace(tzinfo=None)
            return f"'{moment.isoformat(' ', 'microseconds')}'"
        case list() | tuple() | set() | frozenset():
            # In nothing is nobody, also under a NOT: IN (NULL) would be neither true nor false.
            return ",".join(map(literal, value)) or "SELECT NULL FROM DUAL WHERE FALSE"
    raise TypeError(f"{type(value).__name__} can't be put into SQL")


def _float_literal(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that this database can keep")
    text = repr(value)
    # Without an exponent it would be a DECIMAL, and come back as one.
    return text if "e" in text else f"{text}e0"
