"""The column `subscriptions.secrets`: sealed entries, newest first, so that one can be added by who can't read them.

An entry is `length of what is sealed (2) ‖ created_at in unix microseconds (8) ‖ overlap in seconds (4) ‖ sealed`.
"""

import struct
from dataclasses import dataclass

from tidings.vault.ring import OVERHEAD, Vault, place_of

_HEADER = struct.Struct(">HqI")
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Entry:
    """One secret, still sealed. From `created_at` on, what came before it stays valid for `overlap` seconds."""

    created_at: int
    overlap: int
    header: bytes
    sealed: bytes

    @property
    def older_end_at(self) -> int:
        return self.created_at + self.overlap * _MICROSECONDS


def entries(column: bytes) -> list[Entry]:
    """Newest first. The column is cut at its end, so what is left of the oldest one is no entry."""
    found: list[Entry] = []
    at = 0
    while at + _HEADER.size <= len(column):
        header = column[at : at + _HEADER.size]
        length, created_at, overlap = _HEADER.unpack(header)
        at += _HEADER.size + length
        if at <= len(column):
            found.append(Entry(created_at, overlap, header, column[at - length : at]))
    return found


def valid_secrets(vault: Vault, subscription: int, column: bytes | None, now: float) -> list[str]:
    """The newest is always valid; each older one until an overlap of those after it has ended. Newest first.

    SecretsUnusable if the key ring does not open them. `now` is the server's, in seconds.
    """
    valid: list[str] = []
    for entry in entries(column or b""):
        valid.append(vault.open(entry.sealed, _place(subscription, entry.header)).decode())
        if round(now * _MICROSECONDS) >= entry.older_end_at:
            break
    return valid


def seal_secret(vault: Vault, subscription: int, secret: str, *, created_at: int, overlap: int) -> bytes:
    """An entry, to be put before the older ones."""
    plain = secret.encode()
    header = _HEADER.pack(len(plain) + OVERHEAD, created_at, overlap)
    return header + vault.seal(plain, _place(subscription, header))


def _place(subscription: int, header: bytes) -> bytes:
    return place_of("subscriptions", subscription, "secret", header)
