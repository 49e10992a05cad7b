"""The numbered migrations as they lie in their folders: per engine, each a list of named steps."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tidings.db.dialect import Dialect
from tidings.db.names import Names
from tidings.db.statements import NamedText, read_named
from tidings.flow import ROLE_NAMES

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_WORD = re.compile(r"\{([a-z_]+)(?: ([a-z_]+))?\}")

_JSON = {
    "mariadb": "{0} JSON",
    "mysql": "{0} LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin CHECK (JSON_VALID({0}))",
}
_IF_NOT_EXISTS = {"mariadb": "IF NOT EXISTS", "mysql": ""}
# MySQL can't be asked; there no caller submits on a connection of its own.
_IN_TRANSACTION = {"mariadb": "@@in_transaction", "mysql": "1"}
_COLLATION = {"mariadb": "utf8mb4_nopad_bin", "mysql": "utf8mb4_0900_bin"}


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    steps: tuple[NamedText, ...]


@cache
def migrations(family: str) -> tuple[Migration, ...]:
    """All migrations of this family of engines, in order."""
    folder = files("tidings.db.migrations") / family
    found = [(match, path) for path in folder.iterdir() if (match := _FILE.fullmatch(path.name))]
    return tuple(
        Migration(int(match[1]), match[2], tuple(read_named(path.read_text("utf-8"), path.name).values()))
        for match, path in sorted(found, key=lambda pair: pair[0][1])
    )


def newest_version(family: str) -> int:
    return migrations(family)[-1].version


def words(names: Names, dialect: Dialect, definer: str) -> Mapping[str, str]:
    """What the words in braces stand for in this installation."""
    return {
        "schema": dialect.quoted(names.schema),
        "definer": definer,
        **(
            {
                "table_options": _table_options(dialect),
                "json": _JSON[dialect.name],
                "add_column": f"ADD COLUMN {_IF_NOT_EXISTS[dialect.name]}",
                "if_not_exists": _IF_NOT_EXISTS[dialect.name],
                "in_transaction": _IN_TRANSACTION[dialect.name],
            }
            if dialect.family == "mysql"
            else {}
        ),
        **{f"group_{role}": names.group(role) for role in ROLE_NAMES},
        **{f"login_{role}": names.login(role) for role in ROLE_NAMES},
    }


def step_text(step: NamedText, known: Mapping[str, str]) -> str:
    """The step as it is sent, with its name as a comment."""
    text = _WORD.sub(lambda word: known[word[1]].format(word[2]), step.text)
    return f"/* migrate.{step.name} */ {text}"


def ledger_text(dialect: Dialect) -> str:
    """The table in which migrations are recorded; it exists before the first of them."""
    if dialect.family == "postgresql":
        kind, moment, options = 'varchar(100) COLLATE "C"', "timestamptz", ""
    else:
        kind, moment, options = "VARCHAR(100)", "DATETIME(6)", f" {_table_options(dialect)}"
    return (
        f"CREATE TABLE IF NOT EXISTS schema_migrations (version int NOT NULL, step {kind} NOT NULL,"
        f" applied_at {moment} NOT NULL DEFAULT ({dialect.now}), PRIMARY KEY (version, step)){options}"
    )


def _table_options(dialect: Dialect) -> str:
    return f"ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = {_COLLATION[dialect.name]}"
