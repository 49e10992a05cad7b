"""On whose behalf something is done: which request, and from where. For the audit log; outside of requests, nobody."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_NOBODY: Mapping[str, str | None] = {"request_id": None, "address": None}
_asked: ContextVar[Mapping[str, str | None]] = ContextVar("asked", default=_NOBODY)


@contextmanager
def asking(request_id: str, address: str) -> Iterator[None]:
    """For the length of a block, and in all tasks that are begun in it."""
    before = _asked.set({"request_id": request_id, "address": address or None})
    try:
        yield
    finally:
        _asked.reset(before)


def asked() -> Mapping[str, str | None]:
    """`request_id` and `address`, as the audit log has them."""
    return _asked.get()
