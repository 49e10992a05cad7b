"""On whose behalf something is done: which request, and from where. For the audit log; outside of requests, nobody."""

from collections.abc import Mapping
from contextvars import ContextVar

_NOBODY: Mapping[str, str | None] = {"request_id": None, "address": None}
_asked: ContextVar[Mapping[str, str | None]] = ContextVar("asked", default=_NOBODY)


def asking(request_id: str, address: str) -> None:
    """To the end of this task, which serves this one request, and in all tasks that it begins."""
    _asked.set({"request_id": request_id, "address": address or None})


def asked() -> Mapping[str, str | None]:
    """`request_id` and `address`, as the audit log has them."""
    return _asked.get()
