"""The server's own accounts for one installation: groups that hold the grants, logins that are their members.

Pure text; who runs it is decided elsewhere (`tidings migrate --roles=create`) or is a person (`--roles=print`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidings.db.dialect import Dialect
from tidings.db.names import Names
from tidings.flow import OWNER, ROLE_NAMES

ALL_ROLES = (*ROLE_NAMES, OWNER)
# What these want in order comes so from an index. Where statistics are older than a backlog, another index over the
# same rows looks as good to PostgreSQL, and the whole backlog would be read and sorted for each batch.
_NEVER_SORT = {"saga_orchestrator", "job_worker", "lease_cleaner", "task_rescuer", "task_archiver"}
# What it asks without a transaction, which would say so, must not read a log that has grown since it was planned.
_NEVER_SCAN = {"event_router"}
# What people ask is many joins and filters, now and then. A plan kept from when the tables were empty would read them
# whole; made anew each time, it costs a part of a millisecond.
_PLAN_EACH_TIME = {"observer"}
_DEFINER_NEEDS = "SELECT, INSERT, UPDATE, DELETE, TRIGGER, EXECUTE, CREATE TEMPORARY TABLES"


@dataclass(frozen=True)
class Account:
    """A group or a login, and the text that makes it; `after` is repeatable and run in any case."""

    name: str
    make: str
    after: tuple[str, ...] = ()


def accounts(names: Names, dialect: Dialect, passwords: Mapping[str, str]) -> list[Account]:
    """Everything to be made, in order. `passwords` by login."""
    return list(_postgresql(names, passwords) if dialect.family == "postgresql" else _mysql(names, passwords, dialect))


def schema_texts(names: Names, dialect: Dialect) -> list[str]:
    """Makes the schema, or the database, that holds everything else; repeatable."""
    if dialect.family == "postgresql":
        groups = ", ".join(f'"{names.group(role)}"' for role in ALL_ROLES)
        return [
            bare_schema_text(names, dialect),
            f'ALTER SCHEMA "{names.schema}" OWNER TO "{names.group(OWNER)}"',
            f'GRANT USAGE ON SCHEMA "{names.schema}" TO {groups}',
        ]
    return [bare_schema_text(names, dialect)]


def bare_schema_text(names: Names, dialect: Dialect) -> str:
    if dialect.family == "postgresql":
        return f'CREATE SCHEMA IF NOT EXISTS "{names.schema}"'
    return f"CREATE DATABASE IF NOT EXISTS `{names.schema}` CHARACTER SET utf8mb4"


def _postgresql(names: Names, passwords: Mapping[str, str]) -> Iterable[Account]:
    for role in ALL_ROLES:
        yield Account(names.group(role), f'CREATE ROLE "{names.group(role)}" NOLOGIN')
    yield Account("", "", (_membership_of_the_migrator(names),))
    for role in ALL_ROLES:
        login = names.login(role)
        yield Account(
            login,
            f"CREATE ROLE \"{login}\" LOGIN PASSWORD '{passwords[login]}'",
            (
                f'GRANT "{names.group(role)}" TO "{login}"',
                f'ALTER ROLE "{login}" SET search_path = "{names.schema}"',
                *([f'ALTER ROLE "{login}" SET enable_sort = off'] if role in _NEVER_SORT else []),
                *([f'ALTER ROLE "{login}" SET enable_seqscan = off'] if role in _NEVER_SCAN else []),
                *([f'ALTER ROLE "{login}" SET plan_cache_mode = force_custom_plan'] if role in _PLAN_EACH_TIME else []),
            ),
        )


def _membership_of_the_migrator(names: Names) -> str:
    """Whoever migrates must be able to act as every role; a superuser is, anyone else becomes a member."""
    groups = ", ".join(f'"{names.group(role)}"' for role in ALL_ROLES)
    return (
        "DO $$ BEGIN IF NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)"
        f" THEN GRANT {groups} TO CURRENT_USER; END IF; END $$"
    )


def _mysql(names: Names, passwords: Mapping[str, str], dialect: Dialect) -> Iterable[Account]:
    # In a grant on a whole database an underscore is any one character, unless it is escaped.
    schema, definer = f"`{names.schema}`".replace("_", r"\_"), definer_text(names)
    towards = "FOR" if dialect.name == "mariadb" else "TO"
    yield Account(
        names.definer,
        f"CREATE USER {definer} ACCOUNT LOCK",
        (f"GRANT {_DEFINER_NEEDS} ON {schema}.* TO {definer}",),
    )
    for role in ALL_ROLES:
        owns = (f"GRANT ALL PRIVILEGES ON {schema}.* TO `{names.group(role)}`",) if role == OWNER else ()
        yield Account(names.group(role), f"CREATE ROLE `{names.group(role)}`", owns)
    for role in ALL_ROLES:
        login = f"`{names.login(role)}`@`%`"
        yield Account(
            names.login(role),
            f"CREATE USER {login} IDENTIFIED BY '{passwords[names.login(role)]}'",
            (
                f"GRANT `{names.group(role)}` TO {login}",
                f"SET DEFAULT ROLE `{names.group(role)}` {towards} {login}",
            ),
        )


def definer_text(names: Names) -> str:
    return f"`{names.definer}`@`localhost`"
