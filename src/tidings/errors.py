"""What can go wrong for the person or program that uses Tidings. Every error says what was wrong and what to do.

TidingsError
├── SettingsInvalid          all problems of all sources at once
├── DatabaseUrlInvalid
├── DatabaseError
│   ├── ServerUnreachable    nobody answered, also after retrying
│   ├── LoginRefused
│   ├── ServerUnsuitable     too old, or does not do what we rely on
│   ├── TransientFailure     deadlock, lost connection …: the whole step may be run again
│   │   ├── LockTimedOut     somebody else's open transaction held a row for too long
│   │   └── OutcomeUnknown   the connection was lost in COMMIT
│   └── StatementFailed      the server refused a statement; `code` is the server's own
│       ├── DuplicateRow     a unique index has such a row already
│       └── StatementDenied  whatever the rows: a right, a table, time or room is missing
│           └── RoomMissing  the server's disk is full
├── SchemaError              missing, behind, or newer than this program
├── InputRefused             what was given can't be taken; `field` says which part. Nothing was stored
│   ├── EventRefused
│   ├── SubscriptionRefused
│   ├── RouteRefused
│   └── TaskRefused
├── NotFound                 there is no such thing
├── Conflict                 somebody else changed it meanwhile
├── LimitReached             it was asked for too often; later it may be asked for again
├── GateClosed               a person closed the gate, or nobody opened it
├── RouterHeld               the router can't prove that it would miss nothing, and waits for a person
├── HandlerInvalid           an application's handler of tasks can't be used, or none is there
├── PayloadUnfit             a task's payload is not what its handler takes
├── SecretsUnusable          no key, or not the key with which a secret was sealed
├── SignatureRefused         a request that was not signed with this secret, or not just now
├── StatementFileInvalid     a .sql file of ours is wrong
└── EmbeddedServerFailed
"""

from collections.abc import Sequence


class TidingsError(Exception):
    """What was wrong (`what`) and what to do about it (`remedy`)."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what if not remedy else f"{what}\n{remedy}")
        self.what = what
        self.remedy = remedy


class SettingsInvalid(TidingsError):
    """Every problem that was found, each with its place and what would be right."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(["The settings can't be used:", *(f"  - {problem}" for problem in problems)]))
        self.problems = problems


class DatabaseUrlInvalid(TidingsError):
    pass


class DatabaseError(TidingsError):
    pass


class ServerUnreachable(DatabaseError):
    pass


class LoginRefused(DatabaseError):
    pass


class ServerUnsuitable(DatabaseError):
    pass


class TransientFailure(DatabaseError):
    pass


class LockTimedOut(TransientFailure):
    pass


class OutcomeUnknown(TransientFailure):
    pass


class StatementFailed(DatabaseError):
    """`code` is the SQLSTATE on PostgreSQL and the error number on MySQL/MariaDB."""

    def __init__(self, what: str, remedy: str = "", *, code: str = "") -> None:
        super().__init__(what, remedy)
        self.code = code


class DuplicateRow(StatementFailed):
    pass


class StatementDenied(StatementFailed):
    """It would be refused with other rows too, so that no row is to blame."""


class RoomMissing(StatementDenied):
    pass


class SchemaError(TidingsError):
    pass


class InputRefused(TidingsError):
    """`field` is the part of the input that was wrong; of several, each is one of `parts`. Nothing was stored."""

    def __init__(self, what: str, remedy: str = "", *, field: str = "", parts: "Sequence[InputRefused]" = ()) -> None:
        super().__init__(what, remedy)
        self.field = field
        self._parts = tuple(parts)

    @property
    def parts(self) -> "Sequence[InputRefused]":
        return self._parts or (self,)


class EventRefused(InputRefused):
    pass


class SubscriptionRefused(InputRefused):
    pass


class RouteRefused(InputRefused):
    pass


class TaskRefused(InputRefused):
    pass


class NotFound(TidingsError):
    pass


class Conflict(TidingsError):
    pass


class LimitReached(TidingsError):
    pass


class GateClosed(TidingsError):
    pass


class RouterHeld(TidingsError):
    pass


class HandlerInvalid(TidingsError):
    pass


class PayloadUnfit(TidingsError):
    pass


class SecretsUnusable(TidingsError):
    pass


class SignatureRefused(TidingsError):
    pass


class StatementFileInvalid(TidingsError):
    pass


class EmbeddedServerFailed(TidingsError):
    pass
