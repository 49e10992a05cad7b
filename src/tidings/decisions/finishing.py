"""What becomes of a task when its handler has ended, or its worker went silent (seed 003, rulings 4 and 8)."""

from dataclasses import dataclass
from typing import NamedTuple

from tidings.decisions.retrying import Backoff, retry_delay
from tidings.model.task import LONGEST_RESULT, MAX_RETRIES_EXCEEDED, OK, TIMED_OUT, TaskStatus

_REPLACEMENT = "\ufffd"
_CUT = "…"


@dataclass(frozen=True)
class Succeeded:
    """The handler returned."""


@dataclass(frozen=True)
class Failed:
    """It may go better another time: after the usual delay, or after `after` seconds."""

    error: str
    after: float | None = None


@dataclass(frozen=True)
class Refused:
    """The handler says that no other time will go better."""

    reason: str


HandlerResult = Succeeded | Failed | Refused


class Tried(NamedTuple):
    """How often a task was retried, and how often it may be: so it runs at most `max_retries` + 1 times."""

    task_id: int
    retry_count: int
    max_retries: int

    @property
    def was_last(self) -> bool:
        return self.retry_count >= self.max_retries


@dataclass(frozen=True)
class Finish:
    """The row as it ends or waits; `delay` seconds from now if it is tried again."""

    status: TaskStatus
    result_msg: str
    delay: float = 0.0


_WELL = Finish(TaskStatus.SUCCESS, OK)


def finish(tried: Tried, result: HandlerResult, backoff: Backoff) -> Finish:
    match result:
        case Succeeded():
            return _WELL
        case Refused(reason):
            return Finish(TaskStatus.FAIL_TERMINAL, storable(reason))
        case Failed(error) if tried.was_last:
            return Finish(TaskStatus.FAIL_TERMINAL, storable(MAX_RETRIES_EXCEEDED.format(error=error)))
        case Failed(error, after):
            delay = retry_delay(backoff, tried.task_id, tried.retry_count + 1) if after is None else after
            return Finish(TaskStatus.FAIL_RETRY, storable(error), delay)


def rescue(tried: Tried) -> Finish:
    """A silent worker may have been killed by the very task, so it counts as a failure, and is tried again at once."""
    return finish(tried, Failed(TIMED_OUT, after=0.0), Backoff(0.0, 0.0, 0.0))


def storable(text: str) -> str:
    """What a text column of every engine takes: no NUL, no half of a character, and no more than its bound."""
    clean = text.replace("\0", _REPLACEMENT).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return clean if len(clean) <= LONGEST_RESULT else clean[: LONGEST_RESULT - 1] + _CUT
