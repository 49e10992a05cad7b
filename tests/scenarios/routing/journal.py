"""What producers know of their own doings: which ids they committed and when, what was undone, errors by code."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncmy.errors
import asyncpg

LOST = "lost"
# What a driver may raise when a statement fails or its connection ends.
_LOST = (
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what asyncpg says when the server spoke its last word between two statements
    asyncpg.PostgresConnectionError,
    OSError,
    EOFError,
)
DATABASE_ERRORS = (asyncpg.PostgresError, asyncmy.errors.MySQLError, *_LOST)
_NOT_CONNECTED = (0, 2003, 2006, 2013)

# A producer may meet these; whatever else it meets makes the run blind in that place.
EXPECTED_ERRORS = {
    LOST: "the connection, the backend or the server was killed",
    "57P01": "the backend was killed",
    "57P02": "the server was killed",
    "57P03": "the server is starting",
    "23505": "an external id was used twice, on purpose",
    "42704": "a prepared transaction was finished by somebody else",
    "55000": "a prepared transaction is busy",
    "1062": "an external id was used twice, on purpose",
    "1213": "a deadlock",
    "1205": "waited too long for a lock",
    "1467": "waited too long for the lock of the id counter",
    "1053": "the server is stopping",
    "1317": "the statement was killed",
    "1927": "the connection was killed",
    "1094": "the connection to be killed was gone already",
    "1095": "the connection to be killed had not logged in yet",
    "1397": "a prepared transaction is still its first owner's, or was finished by somebody else",
    "1402": "a branch was rolled back by the server",
}


def code_of(error: BaseException) -> str:
    """The server's code, or LOST when there is no server to have one."""
    if isinstance(error, _LOST):
        return LOST
    if isinstance(error, asyncpg.PostgresError):
        return error.sqlstate or type(error).__name__
    if isinstance(error, asyncmy.errors.MySQLError) and error.args:
        return LOST if error.args[0] in _NOT_CONNECTED else str(error.args[0])
    return type(error).__name__


@dataclass(frozen=True)
class Commit:
    """These ids became visible between the two times (seconds since the epoch, of the machine's clock)."""

    tag: str
    ids: tuple[int, ...]
    sent: float
    done: float


@dataclass
class Journal:
    """Filled by the producers of one process; `write` passes each entry on as a line, for somebody to read later."""

    commits: list[Commit] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    write: Callable[[str], None] = lambda line: None

    def committed(self, tag: str, ids: list[int], sent: float, done: float) -> None:
        self._enter("commit", [tag, ids, sent, done])

    def was_undone(self, tag: str) -> None:
        self._enter("undone", tag)

    def did(self, kind: str) -> None:
        self._enter("done", kind)

    def failed(self, error: BaseException) -> None:
        self._enter("error", code_of(error))

    def unexpected_errors(self) -> dict[str, int]:
        return {code: count for code, count in self.errors.items() if code not in EXPECTED_ERRORS}

    def late(self) -> list[Commit]:
        """Commits that brought an id below one that was visible before: what a reader by last id never sees."""
        late, highest = [], 0
        for commit in sorted(self.commits, key=lambda commit: commit.done):
            if min(commit.ids) < highest:
                late.append(commit)
            highest = max(highest, *commit.ids)
        return late

    def add_file(self, path: Path) -> None:
        """What the journal of another process said; a killed one may have left half a line."""
        for line in path.read_text().split("\n")[:-1] if path.exists() else []:
            self._keep(*json.loads(line))

    def _enter(self, what: str, value: Any) -> None:
        self._keep(what, value)
        self.write(json.dumps([what, value]) + "\n")

    def _keep(self, what: str, value: Any) -> None:
        match what:
            case "commit":
                tag, ids, sent, done = value
                if ids:
                    self.commits.append(Commit(tag, tuple(ids), sent, done))
            case "undone":
                self.undone.append(value)
            case "done":
                self.done[value] += 1
            case "error":
                self.errors[value] += 1
