"""The column `subscriptions.headers`: all headers of a subscription, sealed as one and replaced as one."""

import json
from collections.abc import Mapping

from tidings.vault.ring import Vault, place_of


def seal_headers(vault: Vault, subscription: int, headers: Mapping[str, str]) -> bytes:
    return vault.seal(json.dumps(dict(headers)).encode(), _place(subscription))


def open_headers(vault: Vault, subscription: int, sealed: bytes | None) -> dict[str, str]:
    """SecretsUnusable if the key ring does not open them."""
    headers: dict[str, str] = json.loads(vault.open(sealed, _place(subscription))) if sealed else {}
    return headers


def _place(subscription: int) -> bytes:
    return place_of("subscriptions", subscription, "headers")
