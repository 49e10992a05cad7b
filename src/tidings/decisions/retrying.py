"""When a failed delivery is tried again: the one formula, exact, so that anybody can compute it.

delay = min(base · 2^(attempts − 1), longest), times 1 + jitter · u, where u is the first 8 bytes of
SHA-256("{id}:{attempts}") as a big-endian integer over 2^64. What the endpoint asked for wins if it is longer, up to a
day.
"""

from dataclasses import dataclass
from hashlib import sha256

LONGEST_RETRY_AFTER = 86_400.0
# From here on every delay is the longest one: the shortest base doubled so often is more than a century.
_ENOUGH_DOUBLINGS = 62


@dataclass(frozen=True)
class Backoff:
    """Seconds, and the part by which delays are spread."""

    base: float
    longest: float
    jitter: float


def retry_delay(backoff: Backoff, id: int, attempts: int, retry_after: float | None = None) -> float:
    """Seconds until the next attempt, after `attempts` of them have failed."""
    doublings = min(attempts - 1, _ENOUGH_DOUBLINGS)
    delay = min(backoff.base * 2.0**doublings, backoff.longest) * (1 + backoff.jitter * _spread(id, attempts))
    return delay if retry_after is None else max(delay, min(retry_after, LONGEST_RETRY_AFTER))


def _spread(id: int, attempts: int) -> float:
    """The same for the same attempt, and otherwise as good as chance: from 0 to 1."""
    return int.from_bytes(sha256(f"{id}:{attempts}".encode()).digest()[:8], "big") / 2.0**64
