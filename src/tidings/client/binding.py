"""Puts the arguments of a named statement into the marks of a caller's driver; values never become SQL text here."""

from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any

from tidings.db.statements import Statement

Values = list[Any]
Mark = Callable[[Any, Values], str]
"""Adds a value to those to be sent, and says how the text refers to it."""


def format_mark(value: Any, values: Values) -> str:
    values.append(value)
    return "%s"


def number_mark(value: Any, values: Values) -> str:
    values.append(value)
    return f"${len(values)}"


def hex_mark(value: Any, values: Values) -> str:
    """For drivers of the MySQL family, which write values into the text.

    As hex a text arrives whole whatever charset and sql_mode the session has. Plain, a session in latin1 or utf8mb3
    can't say every text, and its comparisons with our columns are refused as a mix of collations.
    """
    if value is None:
        return "NULL"
    if isinstance(value, str):
        values.append(value.encode().hex())
        return "_utf8mb4 x%s"
    return format_mark(value, values)


def bind(statement: Statement, arguments: Mapping[str, Any], mark: Mark) -> tuple[str, tuple[Any, ...]]:
    """The text and the values to be given to the driver with it."""
    values: Values = []
    text = ""
    for literal, field, _, _ in Formatter().parse(statement.text):
        # Whoever marks values by numbers does not read percent signs.
        text += literal if mark is number_mark else literal.replace("%", "%%")
        if field is not None:
            text += _marked(statement.parameters, int(field), arguments, values, mark)
    return text, tuple(values)


def _marked(parameters: tuple[str, ...], number: int, arguments: Mapping[str, Any], values: Values, mark: Mark) -> str:
    name, dot, part = parameters[number].partition(".")
    if not dot:
        return mark(arguments[name], values)
    rows = arguments[name]
    if part == "*":
        return ",".join(f"({','.join(mark(value, values) for value in row)})" for row in rows)
    columns = [parameter for parameter in parameters if parameter.startswith(f"{name}.")]
    place = columns.index(parameters[number])
    return mark([row[place] for row in rows], values)
