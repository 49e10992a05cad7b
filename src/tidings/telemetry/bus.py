"""Carries notices from where they are told to whoever listens; telling costs nothing when nobody does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.telemetry.notices import Notice

Listener = Callable[[Notice], None]

_listeners: list[Listener] = []


def tell(notice: Notice) -> None:
    for listener in _listeners:
        listener(notice)


def listen(listener: Listener) -> None:
    _listeners.append(listener)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Listens for the length of a block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
