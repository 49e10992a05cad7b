"""What a fault proxy needs to know of the talk between a driver and its server, whatever the protocol."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from tests.support.faults import ArmedFault

NAME = re.compile(rb"\s*/\*\s*([\w.]+)\s*\*/")


@dataclass(eq=False)
class Exchange:
    """A request and all of its answer; `aftermath` are the faults that wait for the end of the answer."""

    aftermath: list[ArmedFault] = field(default_factory=list)


@dataclass(frozen=True)
class Request:
    """One message from the client. `text_of` names the statement whose text it carries, `executes` the one it
    makes the server run; a text without a name has the empty name and is never executed by name.
    """

    data: bytes
    exchange: Exchange | None = None
    text_of: str | None = None
    executes: str = ""


@dataclass(frozen=True)
class Answer:
    """One message from the server; `ends` when it is the last of its exchange."""

    data: bytes
    exchange: Exchange | None = None
    ends: bool = False


class Conversation(Protocol):
    """Cuts the two byte streams of one connection into messages, and tells which statement is where."""

    def requests(self, received: bytes) -> Iterator[Request]: ...

    def answers(self, received: bytes) -> Iterator[Answer]: ...


class Unreadable(Exception):
    """The client agreed with the server on something that hides the statements from the proxy."""


def statement_name(text: bytes) -> str:
    """The name in the comment that a statement starts with, or an empty string."""
    found = NAME.match(text)
    return found[1].decode() if found else ""


def take(buffer: bytearray, length: int | None) -> bytes | None:
    """Remove one message from the front of the buffer, if it is complete."""
    if length is None or len(buffer) < length:
        return None
    message = bytes(buffer[:length])
    del buffer[:length]
    return message
