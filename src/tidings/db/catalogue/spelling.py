"""How each engine's catalogue spells what `tidings.tables` says, so that the two can be laid side by side."""

import re

from tidings.db.dialect import DIALECTS
from tidings.db.session import Row
from tidings.tables import Column, Index, Table, columns_of, tables_of

_TYPES = {
    "bigint": "bigint",
    "bigint unsigned": "unsigned bigint",
    "integer": "int",
    "int": "int",
    "smallint": "small",
    "tinyint": "small",
    "boolean": "bool",
    "tinyint(1)": "bool",
    "timestamp with time zone": "instant",
    "datetime(6)": "instant",
    "json": "json",
    "longtext": "json",
    "bytea": "bytes",
    "blob": "bytes",
    "double precision": "real",
    "double": "real",
    "text": "long text",
}
_DEFAULTS = {
    "statement_timestamp()": "now",
    "utc_timestamp(6)": "now",
    "(gen_random_uuid())::text": "uuid",
    "uuid()": "uuid",
}
_BINARY = {"C", "utf8mb4_nopad_bin", "utf8mb4_0900_bin"}


def column_line(row: Row) -> str:
    """One stored column."""
    type = _type(row["type"])
    parts = [type, "null" if row["nullable"] else "not null", f"default {_default(row, type)}"]
    if type.startswith(("text", "long text", "one of")):
        parts.append("bytewise" if row["collation"] in _BINARY else f"collation {row['collation']}")
    return ", ".join(parts)


def _type(spelled: str) -> str:
    if spelled.startswith("enum("):
        return "one of " + " ".join(re.findall(r"'([^']*)'", spelled))
    if length := re.fullmatch(r"(?:character varying|varchar)\((\d+)\)", spelled):
        return f"text {length[1]}"
    plain = re.sub(r"^(bigint|int|tinyint)\((?!1\))\d+\)", r"\1", spelled)
    return _TYPES.get(plain, plain)


def _default(row: Row, type: str) -> str:
    extra, text = str(row["extra"]).lower(), row["default_text"]
    if "auto_increment" in extra or extra == "assigned":
        return "assigned"
    if "stored generated" in extra:
        return "computed"
    if text is None:
        return "none"
    if type == "bool":
        return {"1": "true", "0": "false"}.get(str(text), str(text))
    return _DEFAULTS.get(str(text)) or re.sub(r"::[a-z ]+$", "", str(text))


def index_line(row: Row) -> str:
    """One stored index."""
    kind = "unique " if row["is_unique"] else ""
    where = f" where {_predicate(row['predicate'])}" if row["predicate"] else ""
    return f"{kind}{row['method']} ({row['columns']}){where}"


def _predicate(text: str) -> str:
    plain = re.sub(r"::(character varying|text|smallint|integer)(\[\])?|[()']", "", text)
    listed = re.sub(r"= ANY ARRAY\[([^\]]*)\]", lambda match: f"in ({match[1].replace(',', '')})", plain)
    return listed.replace("IS NOT NULL", "is not null").replace("IS NULL", "is null").replace(" AND ", " and ")


def expected_lines(dialect: str) -> dict[str, str]:
    """Each thing that a healthy schema has by name, with one line that describes it."""
    family = DIALECTS[dialect].family
    lines: dict[str, str] = {}
    for table in tables_of(family).values():
        lines |= _table_lines(table, family)
        if dialect == "mariadb":
            # The JSON type of MariaDB brings a check of its own.
            lines |= {f"check {table.name}.{c.name}": "enforced" for c in table.columns if c.type == "json"}
    return lines


def _table_lines(table: Table, family: str) -> dict[str, str]:
    lines = {f"table {table.name}": "durable"}
    lines |= {f"column {table.name}.{c.name}": _expected_column(c, family) for c in columns_of(table, family)}
    lines[f"index {table.name}.primary key"] = f"unique btree ({' '.join(table.key)})"
    indexes = [i for i in table.indexes if family == "postgresql" or not i.postgresql_only]
    lines |= {f"index {table.name}.{i.name}": _expected_index(i, family) for i in indexes}
    lines |= {f"check {table.name}.{check}": "enforced" for check in table.checks}
    lines |= {f"guard {table.name}.{guard}": "fires" for guard in (table.guards or {}).get(family, ())}
    return lines


def _expected_column(column: Column, family: str) -> str:
    type = column.type
    if family == "postgresql":
        type = "text 20" if type.startswith("one of") else type.removeprefix("unsigned ")
    parts = [type, "null" if column.null else "not null", f"default {column.default or 'none'}"]
    if type.startswith(("text", "long text", "one of")):
        parts.append("bytewise")
    return ", ".join(parts)


def _expected_index(index: Index, family: str) -> str:
    columns = (index.mysql_columns if family == "mysql" else ()) or index.columns
    where = f" where {index.where}" if index.where and family == "postgresql" else ""
    return f"{'unique ' if index.unique else ''}btree ({' '.join(columns)}){where}"


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """What is missing, what is otherwise, what is too much; in words."""
    said = [f"{name} is missing ({line})" for name, line in expected.items() if name not in found]
    said += [
        f"{name} is {found[name]}, not {line}"
        for name, line in expected.items()
        if name in found and found[name] != line
    ]
    return said + [f"{name} is not ours ({line})" for name, line in found.items() if name not in expected]
