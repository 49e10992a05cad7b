"""Requests, and those of them that are written by themselves, because another transaction holds what they need."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tidings.model.event import NewEvent, Published

Answer = asyncio.Future[list[Published]]


@dataclass(eq=False, frozen=True)
class Request:
    events: Sequence[NewEvent]
    answer: Answer

    @property
    def keys(self) -> list[tuple[str, str]]:
        return [(event.event_domain, event.external_id) for event in self.events if event.external_id is not None]


@dataclass(frozen=True)
class Lonely:
    """A request that is written by itself; `is_held` after a first try that had to wait for too long."""

    request: Request
    deadline: float
    is_held: bool = False


class Apart:
    """Requests that wait for somebody's open transaction, or may; those that have not tried alone yet come first."""

    def __init__(self) -> None:
        self._fresh: deque[Lonely] = deque()
        self._held: deque[Lonely] = deque()
        self._held_keys: Counter[tuple[str, str]] = Counter()
        self.is_written = False

    def holds(self, request: Request) -> bool:
        """Whether one of its external ids is known to be held."""
        return bool(self._held_keys) and any(key in self._held_keys for key in request.keys)

    def add(self, requests: Iterable[Request], deadline: float) -> bool:
        """True if nobody writes them yet: the caller has to."""
        self._fresh.extend(Lonely(request, deadline) for request in requests)
        must_begin = not self.is_written
        self.is_written = True
        return must_begin

    def next(self) -> Lonely | None:
        return self._fresh.popleft() if self._fresh else self._held.popleft() if self._held else None

    def put_back(self, one: Lonely) -> None:
        if not one.is_held:
            self._held_keys.update(one.request.keys)
        self._held.append(replace(one, is_held=True))

    def forget(self, one: Lonely) -> None:
        if one.is_held:
            self._held_keys.subtract(one.request.keys)
            self._held_keys += Counter()  # those that are held no longer go

    def all(self) -> list[Lonely]:
        return [*self._fresh, *self._held]
