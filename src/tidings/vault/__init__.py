"""Seals what the database must keep but must not know: the subscriptions' secrets and headers."""

from tidings.vault.headers import open_headers, seal_headers
from tidings.vault.ring import Vault
from tidings.vault.secret_entries import entries, seal_secret, valid_secrets

__all__ = [
    "Vault",
    "entries",
    "open_headers",
    "seal_headers",
    "seal_secret",
    "valid_secrets",
]
