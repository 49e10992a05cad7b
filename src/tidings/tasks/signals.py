"""What a handler is told about its task, and what it may raise to decide how the task goes on."""

import datetime
from dataclasses import dataclass

LONGEST_AFTER = 366 * 86_400.0
ASKED = "The handler asked for a retry"


@dataclass(frozen=True)
class TaskContext:
    """`attempt` is 1 at first. `deadline`, by this machine's clock, is when the handler is out of time.

    `version` is the fence of this run: it grows with every claim, so that what is written outside can be fenced too.
    """

    id: int
    attempt: int
    biz_type: str
    biz_key: str
    correlation_id: str
    deadline: datetime.datetime
    version: int


class Retry(Exception):
    """Not now: the task is tried again, `after` so many seconds or the usual delay. It counts as a retry."""

    def __init__(self, reason: str = ASKED, *, after: float | datetime.timedelta | None = None) -> None:
        super().__init__(reason)
        self.after = None if after is None else _seconds(after)


class Fail(Exception):
    """Never: the task fails for good, with this reason, whatever retries are left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def _seconds(after: float | datetime.timedelta) -> float:
    seconds = after.total_seconds() if isinstance(after, datetime.timedelta) else float(after)
    if not 0 <= seconds <= LONGEST_AFTER:
        raise ValueError(f"after must be from 0 to {LONGEST_AFTER:.0f} seconds, not {after!r}")
    return seconds
