"""A lane: the deliveries of one subscription, and how many of them may be under way."""

import datetime
from dataclasses import dataclass

Moment = datetime.datetime


@dataclass(frozen=True)
class SeenLane:
    """As it is at `now`. `failures` are those in a row; `next_try_at` is when the first that waits is due."""

    subscription_id: int
    window_size: int
    failures: int
    last_failure_at: Moment | None
    last_error_code: str | None
    is_under_way: bool
    next_try_at: Moment | None
    now: Moment

    def words(self, window_max: int, is_held: bool = False) -> str:
        """In one line; of a lane that is held nothing is tried."""
        parts = [f"window {self.window_size:,} of {window_max:,}"]
        if self.failures:
            parts.append(f"{self.failures:,} failure{'s' if self.failures > 1 else ''} in a row")
            parts.append(f"last {self.last_error_code}")
        if self.is_under_way:
            parts.append("under way now")
        elif self.next_try_at is not None and not is_held:
            parts.append(f"next try {self._when(self.next_try_at)}")
        return ", ".join(parts)

    def _when(self, moment: Moment) -> str:
        if moment <= self.now:
            return "now"
        moment = moment.astimezone(datetime.UTC)
        is_today = moment.date() == self.now.astimezone(datetime.UTC).date()
        return f"{moment:%H:%M:%S}" if is_today else f"{moment:%Y-%m-%d %H:%M:%S}"
