"""Counts what an address did wrong lately. In this process alone: it slows guessing, and keeps nothing."""

import ipaddress
import time
from collections import deque
from collections.abc import Callable
from functools import lru_cache

MOST_FAILURES = 20
SECONDS = 60.0
_MOST_NAMES = 10_000
# Whoever has one address of IPv6 has at least so large a network of them.
_ONE_HOUSE = 64


class Throttle:
    """At most so many failures of one name within a time; then it has to wait until the oldest of them is forgotten."""

    def __init__(
        self, most: int = MOST_FAILURES, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._failures: dict[str, deque[float]] = {}

    def failed(self, name: str) -> None:
        if name not in self._failures:
            self._make_room()
        self._failures.setdefault(name, deque(maxlen=self._most)).append(self._clock())

    def holds(self, name: str) -> bool:
        return self.seconds_left(name) > 0

    def seconds_left(self, name: str) -> float:
        """For how long it has to wait; 0 if not at all."""
        failures = self._failures.get(name)
        if failures is None or len(failures) < self._most:
            return 0.0
        return max(0.0, failures[0] + self._seconds - self._clock())

    def _make_room(self) -> None:
        if len(self._failures) < _MOST_NAMES:
            return
        old = self._clock() - self._seconds
        self._failures = {name: failures for name, failures in self._failures.items() if failures[-1] > old}
        while len(self._failures) >= _MOST_NAMES:
            del self._failures[next(iter(self._failures))]


@lru_cache(1024)
def name_of(address: str) -> str:
    """Whom an address stands for."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address) or known.ipv4_mapped:
        return address
    return str(ipaddress.ip_network((known, _ONE_HOUSE), strict=False))
