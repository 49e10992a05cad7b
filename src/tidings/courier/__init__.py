"""Carries one HTTP request out and brings a result back: address guard, limits, signature."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.courier.courier import Courier
    from tidings.courier.exchange import Request, Result
    from tidings.courier.guard import Guard
    from tidings.courier.signing import signature_headers, verify, webhook_id

__all__ = ["Courier", "Guard", "Request", "Result", "signature_headers", "verify", "webhook_id"]

_HOMES = {
    "Courier": "tidings.courier.courier",
    "Guard": "tidings.courier.guard",
    "Request": "tidings.courier.exchange",
    "Result": "tidings.courier.exchange",
    "signature_headers": "tidings.courier.signing",
    "verify": "tidings.courier.signing",
    "webhook_id": "tidings.courier.signing",
}


def __getattr__(name: str) -> Any:
    """Looked up when asked for: a receiver that only verifies signatures loads no client."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings.courier' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
