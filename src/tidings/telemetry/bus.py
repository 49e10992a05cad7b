"""Carries notices from where they are told to whoever listens; telling costs next to nothing when nobody does."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tidings.telemetry.notices import Notice

Listener = Callable[[Notice], None]

_listeners: list[tuple[Listener, tuple[type[Notice], ...]]] = []
# Who hears which kind, worked out when it is first told.
_hearers: dict[type[Notice], tuple[Listener, ...]] = {}


def tell(notice: Notice) -> None:
    for listener in _hearers_of(type(notice)):
        listener(notice)


def is_heard(*kinds: type[Notice]) -> bool:
    """Whether anybody listens, to one of these kinds; where thousands of notices would be made for nobody."""
    return any(_hearers_of(kind) for kind in kinds) if kinds else bool(_listeners)


def listen(listener: Listener, *kinds: type[Notice]) -> None:
    """From now on; to these kinds, or to everything."""
    _listeners.append((listener, kinds))
    _hearers.clear()


@contextmanager
def listening(listener: Listener, *kinds: type[Notice]) -> Iterator[None]:
    """Listens for the length of a block."""
    listen(listener, *kinds)
    try:
        yield
    finally:
        _listeners.remove((listener, kinds))
        _hearers.clear()


def _hearers_of(kind: type[Notice]) -> tuple[Listener, ...]:
    try:
        return _hearers[kind]
    except KeyError:
        found = tuple(listener for listener, kinds in _listeners if not kinds or issubclass(kind, kinds))
        return _hearers.setdefault(kind, found)
