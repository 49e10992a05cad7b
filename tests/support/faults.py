"""Faults as data: at which named statement, before or after the server ran it, and what happens then."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

When = Literal["before", "after"]


@dataclass(frozen=True)
class Cut:
    """Both sides of the connection are reset at once."""


@dataclass(frozen=True)
class KILL:
    """SIGKILL for a process, by default the one at the client's end; the cut follows when it is dead."""

    target: int | Callable[[], int] | None = None


@dataclass(frozen=True)
class Freeze:
    """Nothing is passed on in either direction of this connection until `FaultProxy.thaw()`."""


@dataclass(frozen=True)
class REWRITE:
    """Replaces bytes in the text of every matching statement, with or without a name, from then on."""

    old: bytes
    new: bytes

    def __post_init__(self) -> None:
        if len(self.old) != len(self.new):
            raise ValueError(f"{self.old!r} and {self.new!r} must be of equal length")


CUT = Cut()
FREEZE = Freeze()


@dataclass(frozen=True)
class Fault:
    """Strikes once, when the n-th statement of this name since arming is met; `*` in names as in file names.

    `before`: the statement never reaches the server. `after`: the server ran it and answered, and the client
    never sees the answer. Both, and `nth`, mean nothing to REWRITE.
    """

    statement: str
    action: Cut | KILL | Freeze | REWRITE
    when: When = "before"
    nth: int = 1


@dataclass(eq=False)
class ArmedFault:
    """A fault that waits for its statement."""

    fault: Fault
    met: int = 0
    fired: bool = False

    def is_due(self, statement: str) -> bool:
        """Count this execution of the statement, and tell whether it is the one."""
        if isinstance(self.fault.action, REWRITE) or not fnmatchcase(statement, self.fault.statement):
            return False
        self.met += 1
        return self.met == self.fault.nth


class FaultPlan:
    """What is armed, and what has happened so far; shared by the test and the proxy's thread."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._armed: list[ArmedFault] = []
        self._fired: list[Fault] = []
        self._seen: list[str] = []

    @property
    def fired(self) -> list[Fault]:
        with self._change:
            return self._fired.copy()

    @property
    def seen(self) -> list[str]:
        with self._change:
            return self._seen.copy()

    def arm(self, *faults: Fault) -> None:
        with self._change:
            self._armed += map(ArmedFault, faults)

    def clear(self) -> None:
        with self._change:
            self._armed, self._fired, self._seen = [], [], []

    def meet(self, statement: str) -> list[ArmedFault]:
        """A client executes the statement: remember it, and return the faults that are due."""
        with self._change:
            self._seen.append(statement)
            return [armed for armed in self._armed if armed.is_due(statement)]

    def rewrite(self, statement: str, text: bytes) -> bytes:
        """What is sent instead of this text; `statement` is empty when it has no name."""
        with self._change:
            for armed in self._armed:
                match armed.fault:
                    case Fault(pattern, REWRITE(old, new)) if fnmatchcase(statement, pattern) and old in text:
                        text = text.replace(old, new)
                        self._mark(armed)
        return text

    def mark_fired(self, armed: ArmedFault) -> None:
        with self._change:
            self._mark(armed)

    def wait_fired(self, timeout: float) -> bool:
        with self._change:
            return self._change.wait_for(lambda: all(armed.fired for armed in self._armed), timeout)

    def _mark(self, armed: ArmedFault) -> None:
        if not armed.fired:
            armed.fired = True
            self._fired.append(armed.fault)
            self._change.notify_all()
