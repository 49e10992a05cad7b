"""The answer to `why`: where something is, what it waits for and since when, and what a person can do.

Its texts are sentences that know their names, but for what somebody else said.
"""

import datetime
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Reason:
    """One sentence; `since` is when that began, `remedy` a command that would change it."""

    text: str
    since: datetime.datetime | None = None
    remedy: str = ""


@dataclass(frozen=True)
class Explanation:
    """`is_over` tells that nothing more will happen by itself; `parts` are what it came to."""

    subject: str
    headline: str
    is_over: bool
    reasons: tuple[Reason, ...] = ()
    parts: tuple["Explanation", ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
