"""How much there is to do at one moment, and for how long the oldest of it has waited."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Depth:
    """`oldest_seconds` is 0 where nothing waits."""

    count: int
    oldest_seconds: float


@dataclass(frozen=True)
class RouterLag:
    """`events` is by numbers, some of which may never have become an event."""

    router: str
    events: int
    oldest_seconds: float
    holes: int


@dataclass(frozen=True)
class Depths:
    """`queues` by name: what waits in each stage. Counts end at `counted_to`: so many or more."""

    queues: dict[str, Depth]
    routers: tuple[RouterLag, ...]
    processes: dict[str, int]
    counted_to: int
