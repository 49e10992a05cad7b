"""docs/reference/tables.md, from the tables as they are written once for both engines."""

from collections.abc import Iterator

from tidings.reference.writing import code, head, table
from tidings.tables import TABLES, Column, Index, Table

_SAYS = """All tables, as the catalogues of a healthy installation show them; `tidings doctor` compares. They live
in the schema `tidings` on PostgreSQL and in the database `tidings` on MariaDB (and MySQL, which is meant with it
below). Types are named once for both engines. Times are UTC, in microseconds. Who may read and write what is in
[flow](flow.md); which guards stand before which table in [decision 4](../decisions/0004-guards.md).

For looking, `psql "$(tidings url observer)"` has a login that can change nothing. Writing by hand is for `events`
and `sys_pending_tasks` alone.
"""


def tables_reference() -> str:
    """The whole page."""
    return "\n".join(
        [
            head("Tables", "src/tidings/tables.py", _SAYS),
            *(line for one in TABLES for line in _table(one)),
        ]
    )


def _table(one: Table) -> Iterator[str]:
    yield f"## {one.name}\n"
    if one.mysql_only:
        yield "Only on MariaDB and MySQL.\n"
    yield table(("column", "type", "default"), map(_column, one.columns))
    yield f"Key: {', '.join(map(code, one.key))}.\n"
    if one.indexes:
        yield table(("index", "columns", ""), map(_index, one.indexes))
    if one.checks:
        yield f"Checked: {'; '.join(map(code, one.checks))}.\n"


def _column(column: Column) -> tuple[str, str, str]:
    words = [column.type, *(["may be null"] if column.null else []), *(["MariaDB only"] if column.mysql_only else [])]
    return code(column.name), ", ".join(words), code(column.default)


def _index(index: Index) -> tuple[str, str, str]:
    words = [
        *(["unique"] if index.unique else []),
        *([f"where `{index.where}` on PostgreSQL"] if index.where else []),
        *([f"on MariaDB over {', '.join(map(code, index.mysql_columns))}"] if index.mysql_columns else []),
        *(["PostgreSQL only"] if index.postgresql_only else []),
    ]
    return code(index.name), ", ".join(map(code, index.columns)), "; ".join(words)
