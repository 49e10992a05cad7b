"""Seals what the database must keep but must not know: the subscriptions' secrets and headers."""

from tidings.vault.headers import open_headers, seal_headers
from tidings.vault.ring import Vault
from tidings.vault.secret_entries import Entry, entries, open_secret, seal_secret, valid_secrets

__all__ = [
    "Entry",
    "Vault",
    "entries",
    "open_headers",
    "open_secret",
    "seal_headers",
    "seal_secret",
    "valid_secrets",
]
