"""One connection to one database, as every engine must offer it; the rest of `db/` is the same for all of them."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidings.db.statements import Statement
from tidings.errors import LoginRefused, StatementFailed

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

    @property
    def is_lost(self) -> bool: ...

    async def command(self, text: str) -> None:
        """Runs text without parameters: transaction control, DDL."""

    async def fetch(self, statement: Statement, arguments: Arguments) -> Sequence[Row]: ...

    async def fetch_uncommitted(self, statement: Statement, arguments: Arguments) -> Sequence[Row]:
        """The same, with rows of open transactions where the engine shows them; not inside of a transaction."""

    async def run(self, statement: Statement, arguments: Arguments) -> int:
        """How many rows matched, also where nothing was to change in them."""

    async def listen(self, channels: Sequence[str], heard: Callable[[str], None], lost: Callable[[], None]) -> None:
        """From now on calls `heard` with a channel when somebody notifies it, and `lost` when this session is."""

    async def close(self) -> None:
        """Takes leave of the server, if it still listens."""

    def abandon(self) -> None:
        """Closes at once, without a word: for a session in an unknown state."""


def refuse_naive(value: Any) -> Any:
    """The value itself, unless it is a moment without a time zone, which would mean another one on each machine."""
    if isinstance(value, datetime.datetime) and value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone; give a moment with one, such as datetime.now(UTC)")
    return value


async def act_as(session: Session, quoted_group: str) -> None:
    """All further rights are those of this role."""
    try:
        await session.command(f"SET ROLE {quoted_group}")
    except StatementFailed as error:
        raise LoginRefused(
            f"This login may not act as {quoted_group}. {error.what}",
            "Grant it that role, or give each role a URL of its own: TIDINGS_DATABASE_URL_<ROLE>.",
        ) from error
