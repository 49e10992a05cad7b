"""Leases: how often one may expire, whether there is time for a request before it does, and how many may wait."""

from dataclasses import dataclass


def is_poisoned(lease_resets: int, max_lease_resets: int) -> bool:
    """Whether a lease that has expired once more is not to be reset again."""
    return lease_resets >= max_lease_resets


def has_time(left: float, timeout: float, margin: float) -> bool:
    """Whether a request with this deadline, and the report about it, fit into what is left of the lease."""
    return timeout + margin <= left


def width_of_the_unknown(max_in_flight: int, slots: int, taken: int) -> int:
    """Requests at a time to a subscription of which nothing has come back yet: it may be one of many that hang."""
    return max_in_flight if taken < slots // 4 else min(max_in_flight, 2)


def slots_for_the_slow(slots: int) -> int:
    """Beside the others, of all subscriptions whose requests take long together."""
    return max(1, slots // 2)


@dataclass(frozen=True)
class WaitingRoom:
    """How many leased jobs of one subscription may wait, and how long it takes from one that is sent to the next."""

    places: int
    seconds_between: float


DELAYS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
LONGEST_DELAY = DELAYS[-1]


def waiting_room(width: int, seconds_each: float, spare: int) -> WaitingRoom:
    """Room for what a subscription with `width` requests at a time gets done in a second, as far as places are spare.

    A job that finds no place comes back when those before it will have been sent: one after the other, not all at once.
    """
    places = max(width, min(int(width / max(seconds_each, 0.001)), spare))
    return WaitingRoom(places, seconds_each / width)


def give_back_delay(seconds: float) -> float:
    """One of a few, not before that: each is one statement for all that are given back for so long."""
    return next((delay for delay in DELAYS if delay >= seconds), LONGEST_DELAY)
