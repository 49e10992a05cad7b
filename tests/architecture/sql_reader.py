"""Reads which tables and columns a statement touches, and how.

It knows the SQL that our files are written in and nothing more; what it can't read it refuses.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tidings.flow import DELETE, EXECUTE, INSERT, SELECT, UPDATE
from tidings.tables import ROUTINES, TABLES

COLUMNS = {table.name: frozenset(column.name for column in table.columns) for table in TABLES}
OURS_TO_CALL = {*ROUTINES, "start_next_generation"}

_TOKEN = re.compile(
    r"""(?P<skip>\s+|--[^\n]*|/\*.*?\*/)|(?P<text>'(?:[^']|'')*')|(?P<parameter>\{\d+\})"""
    r"""|(?P<name>@*["`]?[a-z_][\w$]*["`]?(?:\.(?:["`]?[a-z_][\w$]*["`]?|\*))*)"""
    r"""|(?P<number>\d+(?:\.\d+)?)|(?P<sign>::|[-+*/%<>=!|&~^?#@]+|[(),;.\[\]:]|\{\{|\}\})""",
    re.IGNORECASE | re.DOTALL,
)
_OPENINGS = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "CALL", "SET", "VALUES"}
_UNREADABLE = {
    "TRUNCATE",
    "MERGE",
    "COPY",
    "REPLACE",
    "ALTER",
    "CREATE",
    "DROP",
    "GRANT",
    "REVOKE",
    "LOCK",
    "HANDLER",
    "LOAD",
}
_FUNCTIONS_WITH_FROM = {"EXTRACT", "TRIM", "SUBSTRING", "OVERLAY"}
_ENDS_A_FROM = {
    "WHERE",
    "GROUP",
    "ORDER",
    "LIMIT",
    "SET",
    "UNION",
    "FOR",
    "RETURNING",
    "HAVING",
    "WINDOW",
    "SELECT",
    "VALUES",
    "INTERSECT",
    "EXCEPT",
}
_NO_ALIAS = _ENDS_A_FROM | {
    "ON",
    "JOIN",
    "LEFT",
    "RIGHT",
    "INNER",
    "CROSS",
    "FULL",
    "NATURAL",
    "USING",
    "STRAIGHT_JOIN",
    "OFFSET",
    "FORCE",
    "USE",
    "IGNORE",
}
_CATALOGUES = ("pg_catalog.", "information_schema.", "mysql.", "performance_schema.", "pg_")


class Unreadable(Exception):
    """The reader does not understand the statement; it says nothing about it rather than something wrong."""


@dataclass
class Touched:
    """What one statement does: (verb, table, column); `*` is every column, an empty column any one of them."""

    rights: set[tuple[str, str, str]] = field(default_factory=set)
    read_names: set[str] = field(default_factory=set)
    star_over: set[str] = field(default_factory=set)


@dataclass
class Scope:
    """One query level: what stands between two parentheses."""

    function: str = ""
    in_from: bool = False
    tables: dict[str, str] = field(default_factory=dict)
    star: bool = False


class Reader:
    """Walks once over the tokens of a statement."""

    def __init__(self, text: str) -> None:
        self.tokens = list(_tokens(text))
        self.at = 0
        self.touched = Touched()
        self.scopes = [Scope()]
        self.aliases: dict[str, str] = {}
        self.known_elsewhere = {
            name
            for name, after, paren in zip(self.tokens, self.tokens[1:], self.tokens[2:], strict=False)
            if after.upper() == "AS" and paren == "("
        }

    def read(self) -> Touched:
        if not self.tokens or self.tokens[0].upper() not in _OPENINGS:
            raise Unreadable(f"it begins with {self.tokens[:1]}")
        while self.at < len(self.tokens):
            self._step(self._next())
        self._leave(self.scopes[0])
        if len(self.scopes) != 1:
            raise Unreadable("a parenthesis stays open")
        return self.touched

    def _step(self, token: str) -> None:
        scope, word = self.scopes[-1], token.upper()
        if word == "(":
            self.scopes.append(Scope(function=self._before(2)))
        elif word == ")":
            self._leave(self.scopes.pop())
        elif word == "LOCK" and self._peek().upper() == "IN":
            self._next()  # LOCK IN SHARE MODE: unlike FOR SHARE it wants no right but to read
        elif word in _UNREADABLE and self._peek() != "(":
            raise Unreadable(f"{word} is not read here")
        elif word == ";":
            raise Unreadable("two statements in one")
        elif word == "INSERT":
            self._insert()
        elif word == "DELETE":
            self._delete()
        elif word == "UPDATE" and self._before(2) in ("FOR", "KEY", "DO"):
            self._after_update_as_a_clause(self._before(2))
        elif word == "SHARE" and self._before(2) == "FOR":
            self._lock()
        elif word == "UPDATE":
            self._update()
        elif word == "CALL" or (token.lower().split(".")[-1] in OURS_TO_CALL and self._peek() == "("):
            name = self._next() if word == "CALL" else token
            self.touched.rights.add((EXECUTE, name.split(".")[-1], ""))
        elif (word == "FROM" and not self._is_no_clause(scope)) or word in ("JOIN", "STRAIGHT_JOIN"):
            scope.in_from = True
            self._item()
        elif word == "," and scope.in_from:
            self._item()
        elif word in _ENDS_A_FROM:
            scope.in_from = False
        elif token.endswith(".*") or (token == "*" and self._before(2) in ("SELECT", "DISTINCT", ",", "RETURNING")):
            scope.star = True
        else:
            self.touched.read_names.add(token.split(".")[-1].strip('"`'))

    def _is_no_clause(self, scope: Scope) -> bool:
        return scope.function in _FUNCTIONS_WITH_FROM or self._before(2) == "DISTINCT"

    def _item(self) -> None:
        """One thing to read from: a table, a query in parentheses or a function."""
        while self._peek().upper() in ("ONLY", "LATERAL", "ROWS"):
            self._next()
        if self._peek() == "(":
            return
        name = self._next()
        if self._peek() == "(":
            self._step(name)
        elif self._is_ours(name):
            self._name(name)
            self.touched.rights.add((SELECT, _plain(name), ""))

    def _is_ours(self, name: str) -> bool:
        if _plain(name) in COLUMNS and (name.lower() not in self.known_elsewhere):
            return True
        if name in self.known_elsewhere or name.lower().startswith(_CATALOGUES) or name.startswith("{"):
            return False
        raise Unreadable(f"{name} is no table of ours, no catalogue and no name of this statement")

    def _name(self, name: str) -> str:
        """Notes under which names the statement speaks of the table just read."""
        table, scope = _plain(name), self.scopes[-1]
        if self._peek().upper() == "AS":
            self._next()
        alias = table
        if re.fullmatch(r"[a-z_]\w*", self._peek(), re.IGNORECASE) and self._peek().upper() not in _NO_ALIAS:
            alias = self._next()
        for known in (alias, table):
            self.aliases.setdefault(known, table)
            scope.tables.setdefault(known, table)
        return table

    def _insert(self) -> None:
        while self._peek().upper() in ("IGNORE", "INTO"):
            self._next()
        table = self._target()
        self.inserted = table
        if self._peek() == "(" and self.tokens[self.at + 1].upper() not in ("SELECT", "VALUES", "WITH"):
            self.touched.rights |= {(INSERT, table, column) for column in self._listed()}
        else:
            self.touched.rights.add((INSERT, table, "*"))

    def _delete(self) -> None:
        if self._peek().upper() != "FROM":
            raise Unreadable("DELETE of one table of several")
        self._next()
        self.touched.rights.add((DELETE, self._target(), ""))
        self.scopes[-1].in_from = False
        if self._peek().upper() == "USING":
            self._next()
            self.scopes[-1].in_from = True
            self._item()

    def _update(self) -> None:
        """Up to SET, whatever is joined; then what is set, by the names the tables were given."""
        table = self._target()
        while self._peek().upper() != "SET":
            if self.at >= len(self.tokens):
                raise Unreadable("UPDATE without SET")
            self._step(self._next())
        self._next()
        self._assignments(table)

    def _after_update_as_a_clause(self, before: str) -> None:
        if before == "FOR":
            return self._lock()
        if before == "DO" and self._next().upper() != "SET":
            raise Unreadable("DO UPDATE without SET")
        return self._assignments(self.inserted)

    def _assignments(self, table: str) -> None:
        while True:
            if self._peek() == "(":
                self.touched.rights |= {(UPDATE, table, column) for column in self._listed()}
            else:
                owner, _, column = self._next().rpartition(".")
                if owner and owner not in self.aliases:
                    raise Unreadable(f"{owner} is set and was never named")
                self.touched.rights.add((UPDATE, self.aliases[owner] if owner else table, column))
            if self._next() != "=":
                raise Unreadable("what is set is followed by no =")
            if not self._skip_expression():
                return

    def _skip_expression(self) -> bool:
        """Walks over a value; True if another assignment follows."""
        depth = len(self.scopes)
        while self.at < len(self.tokens):
            token = self._peek()
            if len(self.scopes) == depth:
                if token == ",":
                    self._next()
                    return True
                if token == ")" or token.upper() in ("WHERE", "FROM", "RETURNING", "ORDER", "LIMIT"):
                    return False
            self._step(self._next())
        return False

    def _lock(self) -> None:
        if self._peek().upper() == "OF":
            self._next()
            named = [self._next()]
            while self._peek() == ",":
                self._next()
                named.append(self._next())
            locked = {self.aliases[name] for name in named}
        else:
            locked = set(self.scopes[-1].tables.values())
        self.touched.rights |= {(UPDATE, table, "") for table in locked}

    def _target(self) -> str:
        name = self._next()
        if _plain(name) not in COLUMNS:
            raise Unreadable(f"{name} is written and is no table of ours")
        return self._name(name)

    def _listed(self) -> Iterator[str]:
        self._next()
        while (token := self._next()) != ")":
            if token != ",":
                yield token.strip('"`')

    def _leave(self, scope: Scope) -> None:
        if scope.star:
            self.touched.star_over |= set(scope.tables.values())

    def _next(self) -> str:
        if self.at >= len(self.tokens):
            raise Unreadable("it ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _before(self, distance: int) -> str:
        """The word before the one just taken, in capitals."""
        return self.tokens[self.at - distance].upper() if self.at >= distance else ""


def _tokens(text: str) -> Iterator[str]:
    end = 0
    for match in _TOKEN.finditer(text):
        if match.start() != end:
            raise Unreadable(f"no token of ours: {text[end : match.start()]!r}")
        end = match.end()
        if not match["skip"]:
            yield match[0]
    if end != len(text):
        raise Unreadable(f"no token of ours: {text[end:]!r}")


def _plain(name: str) -> str:
    return name.split(".")[-1].strip('"`').lower()
