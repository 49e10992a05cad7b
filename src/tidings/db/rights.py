"""Rights as values: what the map asks for, what a server has granted, and the difference of the two."""

from collections.abc import Iterable
from dataclasses import dataclass

from tidings.db.dialect import Dialect
from tidings.db.names import Names
from tidings.db.session import Server
from tidings.flow import EXECUTE, INSERT, ROLES, Permission
from tidings.tables import Table, columns_of, tables_of


@dataclass(frozen=True, order=True)
class Right:
    """One verb for one grantee on one table; on the whole table when `column` is empty.

    MySQL grants on whole databases, too: that is `*`, or `database.*` where its name is spelled in another way.
    """

    grantee: str
    verb: str
    table: str
    column: str = ""

    def __str__(self) -> str:
        return f"{self.verb} on {self.table}{'.' + self.column if self.column else ''} for {self.grantee}"


PUBLIC = "public"


def grantees(names: Names, role: str, server: Server) -> list[str]:
    """Everybody from whom this role could have rights: only the group should have any."""
    return [names.group(role), names.login(role), *([PUBLIC] if _knows_public(server) else [])]


def _knows_public(server: Server) -> bool:
    return server.dialect == "postgresql" or (server.dialect == "mariadb" and server.version >= (10, 11))


def wanted_rights(names: Names, family: str) -> frozenset[Right]:
    """Every right of every role, as the map says."""
    return frozenset(
        right
        for role in ROLES
        for permission in role.may
        for right in _rights(names.group(role.name), permission, family)
    )


def _rights(grantee: str, permission: Permission, family: str) -> Iterable[Right]:
    if permission.verb == EXECUTE:
        return [Right(grantee, EXECUTE, permission.table)]
    table = tables_of(family).get(permission.table)
    if table is None:
        return []
    columns = permitted_columns(permission, table, family)
    return [Right(grantee, permission.verb, table.name, column) for column in columns]


def permitted_columns(permission: Permission, table: Table, family: str) -> tuple[str, ...]:
    """The columns by name, or one empty name for the whole table."""
    if permission.columns:
        return permission.columns
    # MariaDB refuses INSERT … RETURNING to whom only columns are granted; there the trigger keeps the ids.
    if not permission.but or (family == "mysql" and permission.verb == INSERT and permission.but == ("id",)):
        return ("",)
    return tuple(column.name for column in columns_of(table, family) if column.name not in permission.but)


def grant_texts(wanted: Iterable[Right], has: Iterable[Right], schema: str, dialect: Dialect) -> list[str]:
    """What brings a server from what it has to what the map says: grants first, so that no process stands still."""
    asked, held = frozenset(wanted), frozenset(has)
    excess = held - asked
    steps = (
        ("GRANT", "TO", asked - held),
        ("REVOKE", "FROM", excess),
        # Taking a verb back from a whole table takes it from every column too.
        ("GRANT", "TO", {right for right in asked if any(_takes_along(taken, right) for taken in excess)}),
    )
    return [
        _text(word, direction, rights, schema, dialect)
        for word, direction, several in steps
        for rights in _grouped(several)
    ]


def _takes_along(taken: Right, right: Right) -> bool:
    same_table = (taken.grantee, taken.table, taken.column) == (right.grantee, right.table, "")
    return same_table and taken.verb in (right.verb, "ALL PRIVILEGES")


def _grouped(rights: Iterable[Right]) -> list[list[Right]]:
    groups: dict[tuple[str, str, str, bool], list[Right]] = {}
    for right in sorted(rights):
        groups.setdefault((right.grantee, right.table, right.verb, bool(right.column)), []).append(right)
    return list(groups.values())


def _text(word: str, direction: str, rights: list[Right], schema: str, dialect: Dialect) -> str:
    first = rights[0]
    database, _, table = first.table.rpartition(".")
    subject = f"{dialect.quoted(database or schema)}.{table}"
    grantee = first.grantee if first.grantee == PUBLIC else dialect.quoted(first.grantee)
    columns = f" ({', '.join(right.column for right in rights)})" if first.column else ""
    what = {"postgresql": "FUNCTION ", "mysql": "PROCEDURE "}[dialect.family] if first.verb == EXECUTE else ""
    return f"{word} {first.verb}{columns} ON {what}{subject} {direction} {grantee}"
