"""The endpoints of a run and what each of them does: mostly well, some slow, some broken, each in its own way.

Shares no code with the product: the receiver and the checker read this too.
"""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Endpoint:
    """`kind` says what it does with a request. `relayed`: requests come by way of a relay that cuts and freezes."""

    path: str
    kind: str
    event_type: str
    max_retry_limit: int
    relayed: bool = False


@dataclass(frozen=True)
class Group:
    """Three endpoints that get the same events, and how many of a thousand events are theirs."""

    event_type: str
    kinds: tuple[str, str, str]
    share: float


# Of 27 endpoints 15 are well, 3 slow, 2 flap, and there is one that hangs, one that drips, one that says too much, one
# that says 429, one that is dead, one that is refused, and one that kills whoever calls it. By events far more are
# well: what is broken is sent to one by one, and a run must end.
GROUPS = (
    Group("well.a", ("well", "well", "well"), 220),
    Group("well.b", ("well", "well", "well"), 220),
    Group("well.c", ("well", "well", "well"), 220),
    Group("well.d", ("well", "well", "well"), 200),
    Group("mixed.a", ("well", "well", "flapping"), 60),
    Group("mixed.b", ("well", "slow", "flapping"), 65),
    Group("ill.a", ("slow", "busy", "drips"), 18),
    Group("ill.b", ("dead", "hangs", "huge"), 12),
    Group("ill.c", ("slow", "refused", "poison"), 0.5),
)
LIMITS = {"dead": 3, "hangs": 2, "poison": 1, "refused": 2}
LIMIT = 6
BUSY_SECONDS = 1
# How long a handler of a task may run.
HANDLER_SECONDS = 0.6
# What nobody publishes: these endpoints are only asked whether they want it, and one in four does not say so.
UNWANTED = "nobody.wants"
PROVERS = 16


def endpoints() -> list[Endpoint]:
    return [
        Endpoint(
            path=f"/{group.event_type}/{number}/{kind}",
            kind=kind,
            event_type=group.event_type,
            max_retry_limit=LIMITS.get(kind, LIMIT),
            # Not all: what is cut off is sent again, and that must be seen to be the reason.
            relayed=kind in ("well", "flapping") and number == 1,
        )
        for group in GROUPS
        for number, kind in enumerate(group.kinds)
    ]


def provers() -> list[Endpoint]:
    """Those that have to prove that they want anything; they never get an event."""
    kinds = ["declines" if number % 4 == 3 else "agrees" for number in range(PROVERS)]
    return [Endpoint(f"/prove/{number}/{kind}", kind, UNWANTED, LIMIT) for number, kind in enumerate(kinds)]


def is_odd(message: str, of: int) -> bool:
    """One of so many messages, always the same ones."""
    return int.from_bytes(hashlib.sha256(message.encode()).digest()[:4], "big") % of == 0
