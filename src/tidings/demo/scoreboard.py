"""Who has got how much so far, told by the roles' own notices, and a picture of it."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from rich.table import Table

from tidings.demo.receivers import Receiver
from tidings.telemetry.notices import (
    Notice,
    SagaCompleted,
    SagaDeadLettered,
    SagaRetryScheduled,
    SagaStarted,
)

HEARD = (SagaStarted, SagaCompleted, SagaRetryScheduled, SagaDeadLettered)
_ENDS = {"Completed": "delivered", "PendingRetry": "retrying", "DeadLettered": "dead"}


class Scoreboard:
    """The newest word on each delivery. A requeued one is a new delivery, and its old one is no longer dead."""

    def __init__(self) -> None:
        self._lane_of: dict[int, int] = {}
        self._state_of: dict[int, str] = {}
        self._counts: dict[int, Counter[str]] = defaultdict(Counter)
        self.failures = 0

    def hear(self, notice: Notice) -> None:
        if isinstance(notice, SagaStarted):
            self._lane_of.setdefault(notice.saga_id, notice.subscription_id)
            self._move(notice.saga_id, "under way")
        elif isinstance(notice, SagaCompleted | SagaRetryScheduled | SagaDeadLettered):
            self.failures += not isinstance(notice, SagaCompleted)
            self._move(notice.saga_id, _ENDS[notice.delivery_status])

    def of(self, subscription: int, state: str) -> int:
        return self._counts[subscription][state]

    def requeued(self) -> None:
        """What was dead has begun anew."""
        for saga, state in [*self._state_of.items()]:
            if state == "dead":
                self._move(saga, "requeued")

    def _move(self, saga: int, state: str) -> None:
        lane = self._lane_of.get(saga, 0)
        if before := self._state_of.get(saga):
            self._counts[lane][before] -= 1
        self._state_of[saga] = state
        self._counts[lane][state] += 1


def picture(board: Scoreboard, receivers: Sequence[tuple[int, Receiver, int]], doing: str) -> Table:
    """Of each receiver its subscription, and how many events it wants."""
    table = Table(title=doing, title_justify="left", title_style="bold", min_width=96)
    table.add_column("receiver")
    table.add_column("", style="dim")
    for heading in ("delivered", "under way", "retrying", "dead", "requests"):
        table.add_column(heading, justify="right", min_width=9)
    for subscription, receiver, wanted in receivers:
        delivered = board.of(subscription, "delivered")
        table.add_row(
            receiver.name,
            receiver.describes,
            f"[green]{delivered:,}[/]" if delivered == wanted else f"{delivered:,} of {wanted:,}",
            f"{board.of(subscription, 'under way'):,}",
            f"[yellow]{retrying:,}[/]" if (retrying := board.of(subscription, "retrying")) else "0",
            f"[red]{dead:,}[/]" if (dead := board.of(subscription, "dead")) else "0",
            f"{receiver.requests:,}",
        )
    return table
