"""How much there is to do at one moment, and for how long the oldest of it has waited."""

from dataclasses import dataclass, field


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
class TaskDepth:
    """The tasks of one type that nobody has claimed yet, and those of them whose time has come.

    `oldest_seconds` is for how long the first of those waits; 0 where nothing is due.
    """

    biz_type: str
    waiting: int
    due: int
    oldest_seconds: float


@dataclass(frozen=True)
class Depths:
    """`queues` by name: what waits in each stage. Counts end at `counted_to`: so many or more.

    `windows` by subscription: those that are not as wide as can be.
    """

    queues: dict[str, Depth]
    routers: tuple[RouterLag, ...]
    processes: dict[str, int]
    counted_to: int
    tasks: tuple[TaskDepth, ...] = ()
    windows: dict[int, int] = field(default_factory=dict)
