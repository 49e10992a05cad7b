"""One connection to one database, as every engine must offer it; the rest of `db/` is the same for all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.db.statements import Statement

Row = Mapping[str, Any]
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Server:
    """What a server says it is: `product` in a person's words, `version` comparable."""

    product: str
    version: tuple[int, ...]
    dialect: str

    def __str__(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"


class Session(Protocol):
    """Errors come out as those of `tidings.errors`. `is_lost` tells that nothing more can be asked of it."""

    server: Server
    is_lost: bool

    async def command(self, text: str) -> None:
        """Runs text without parameters: transaction control, DDL."""

    async def fetch(self, statement: Statement, arguments: Arguments) -> Sequence[Row]: ...

    async def run(self, statement: Statement, arguments: Arguments) -> int:
        """How many rows matched, also where nothing was to change in them."""

    async def close(self) -> None: ...


def batch_rows(statement: Statement, arguments: Arguments) -> int | None:
    """How many rows the statement's batch has; None if it takes none."""
    for parameter in statement.parameters:
        name, dot, _ = parameter.partition(".")
        if dot:
            return len(arguments[name])
    return None
