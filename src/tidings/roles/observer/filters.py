"""What lists can be asked for: which events, deliveries, dead letters, subscriptions, as their statements take it."""

import datetime
from dataclasses import dataclass
from typing import Any

from tidings.roles.observer.listing import EVER, NEVER


@dataclass(frozen=True)
class EventFilter:
    """Which events; '' and None stand for any. A correlation id goes with a domain, and with nothing else."""

    event_domain: str = ""
    event_type: str = ""
    correlation_id: str = ""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    @property
    def is_of_time(self) -> bool:
        return self.since is not None or self.until is not None


@dataclass(frozen=True)
class LetterFilter:
    """Which dead letters; '', 0 and None stand for any."""

    event_domain: str = ""
    subscription_id: int = 0
    error_code: str = ""
    event_type: str = ""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    @property
    def is_plain(self) -> bool:
        """Whether an index serves it without looking for what fits."""
        return not (self.event_domain or self.error_code or self.event_type or self.since or self.until)

    @property
    def fitting(self) -> dict[str, Any]:
        """What is asked of each letter, beside its subscription."""
        return {
            "error_code": self.error_code,
            "event_type": self.event_type,
            "since": self.since or EVER,
            "until": self.until or NEVER,
        }


@dataclass(frozen=True)
class SagaFilter:
    """Which deliveries; '', 0 and None stand for any."""

    event_domain: str = ""
    status: str = ""
    subscription_id: int = 0
    event_type: str = ""
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    @property
    def fitting(self) -> dict[str, Any]:
        return {**vars(self), "since": self.since or EVER, "until": self.until or NEVER}


@dataclass(frozen=True)
class SubscriptionFilter:
    """Which subscriptions; '' and None stand for any."""

    event_domain: str = ""
    event_type: str = ""
    active: bool | None = None
    verified: bool | None = None
    paused: bool | None = None

    @property
    def fitting(self) -> dict[str, str]:
        """Whether something must be so, must not, or may: as a word."""
        flags = {"active": self.active, "verified": self.verified, "paused": self.paused}
        words = {name: "" if flag is None else str(flag).lower() for name, flag in flags.items()}
        return {"event_domain": self.event_domain, "event_type": self.event_type, **words}
