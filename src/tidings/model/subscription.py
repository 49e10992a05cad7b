"""Who gets which events, where to, and how an endpoint proves that it wants them before anything is sent to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Verification(StrEnum):
    PROOF = "proof"
    ECHO = "echo"
    NONE = "none"


@dataclass(frozen=True)
class Limits:
    """What a subscription may say for itself; None: as the settings say."""

    max_retry_limit: int | None = None
    base_delay_seconds: float | None = None
    timeout_seconds: float | None = None
    max_in_flight: int | None = None


@dataclass(frozen=True, repr=False)
class NewSubscription:
    """A subscription that was checked and may be stored. Without a `secret` one is made. Not shown: it has secrets."""

    event_type: str
    callback_url: str
    event_domain: str
    description: str
    verification: Verification
    limits: Limits
    headers: Mapping[str, str]
    secret: str | None


@dataclass(frozen=True)
class Subscription:
    """A stored subscription, as far as those may see it who can't read secrets."""

    id: int
    event_domain: str
    event_type: str
    callback_url: str
    pending_callback_url: str | None
    active: bool
    verified: bool
    verification: Verification
    paused: bool
    description: str
    max_retry_limit: int | None
    base_delay_seconds: float | None
    timeout_seconds: float | None
    max_in_flight: int | None
    config_version: int

    @property
    def latest_url(self) -> str:
        """What it was last asked to be, in force or not."""
        return self.pending_callback_url or self.callback_url

    @property
    def standing(self) -> str:
        """How far its endpoint is trusted, in words."""
        if not self.verified:
            return "unverified"
        return "trusted, not verified" if self.verification is Verification.NONE else "verified"

    @property
    def state(self) -> str:
        """All that decides whether it is sent to, in words."""
        words = ["active" if self.active else "inactive", *(["paused"] if self.paused else []), self.standing]
        return " · ".join([*words, *(["new URL pending"] if self.pending_callback_url else [])])


def subscription_from(row: Mapping[str, Any]) -> Subscription:
    """From a row of the table; engines differ in how they give truths and choices."""
    fields = {name: row[name] for name in Subscription.__dataclass_fields__}
    truths = {name: bool(row[name]) for name in ("active", "verified", "paused")}
    return Subscription(**{**fields, **truths, "verification": Verification(row["verification"])})
