"""Leases: how often one may expire, whether there is time for a request before it does, and how many may wait."""

from dataclasses import dataclass


def is_poisoned(lease_resets: int, max_lease_resets: int) -> bool:
    """Whether a lease that has expired once more is not to be reset again."""
    return lease_resets >= max_lease_resets


def has_time(left: float, timeout: float, margin: float) -> bool:
    """Whether a request with this deadline, and the report about it, fit into what is left of the lease."""
    return timeout + margin <= left


@dataclass(frozen=True)
class WaitingRoom:
    """How many leased jobs of one subscription may wait, and after how long the others may be leased again."""

    places: int
    delay: float


SHORTEST_DELAY, LONGEST_DELAY = 0.2, 10.0


def waiting_room(width: int, seconds_each: float, spare: int) -> WaitingRoom:
    """Room for what a subscription with `width` requests at a time gets done in a second, as far as places are spare.

    Who finds no place comes back when those who wait will have been sent.
    """
    places = max(width, min(int(width / max(seconds_each, 0.001)), spare))
    return WaitingRoom(places, round(min(max(places * seconds_each / width, SHORTEST_DELAY), LONGEST_DELAY), 1))
