"""Tidings: from your own database transaction to signed webhooks and tasks, with one database and nothing else."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidings.client import Event, publish, publish_many
    from tidings.courier.signing import verify
    from tidings.errors import EventRefused, SignatureRefused, TidingsError
    from tidings.model.event import EventLimits, Published

    __version__: str

__all__ = [
    "Event",
    "EventLimits",
    "EventRefused",
    "Published",
    "SignatureRefused",
    "TidingsError",
    "publish",
    "publish_many",
    "verify",
]

_HOMES = {
    "Event": "tidings.client",
    "EventLimits": "tidings.model.event",
    "EventRefused": "tidings.errors",
    "Published": "tidings.model.event",
    "SignatureRefused": "tidings.errors",
    "TidingsError": "tidings.errors",
    "publish": "tidings.client",
    "publish_many": "tidings.client",
    "verify": "tidings.courier.signing",
}


def __getattr__(name: str) -> Any:
    """Looked up when asked for: `import tidings` costs nothing to those who want one part of it."""
    if name == "__version__":
        from importlib.metadata import version

        return version("tidings")
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
