"""How many sagas of each lane may start: lanes are served in turn, and each has a window."""

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

LANES_AT_ONCE = 64
LEAST_SHARE = 32


@dataclass(frozen=True)
class FlowLimits:
    """Active jobs of all lanes together, and of one of them."""

    active_jobs_max: int
    window: int


def next_turn(lanes: Sequence[int], last: int) -> list[int]:
    """The lanes after the last that had its turn, and from the beginning again. `lanes` ascend."""
    start = bisect_right(lanes, last)
    return [*lanes[start : start + LANES_AT_ONCE], *lanes[: min(start, LANES_AT_ONCE)]][:LANES_AT_ONCE]


def lanes_to_serve(turn: Sequence[int], news: Iterable[int], allowed: Container[int]) -> list[int]:
    """Those with news first, then those whose turn it is; each once."""
    first = [lane for lane in dict.fromkeys(news) if lane in allowed][:LANES_AT_ONCE]
    return list(dict.fromkeys([*first, *turn]))


def free_room(active: Mapping[int, int], limits: FlowLimits, batch: int) -> int:
    """How many may start at all."""
    return max(0, min(batch, limits.active_jobs_max - sum(active.values())))


def rooms(lanes: Sequence[int], active: Mapping[int, int], limits: FlowLimits, free: int) -> dict[int, int]:
    """How many of each lane are looked at; a lane whose window is full has no room."""
    if free <= 0 or not lanes:
        return {}
    share = min(free, max(LEAST_SHARE, -(-free // len(lanes))))
    found = {lane: min(share, limits.window - active.get(lane, 0)) for lane in lanes}
    return {lane: room for lane, room in found.items() if room > 0}


def taken_in_turn(due: Mapping[int, Sequence[int]], free: int) -> list[int]:
    """One of each lane, then the next of each, until `free` are taken."""
    taken: list[int] = []
    depth = 0
    while len(taken) < free:
        layer = [sagas[depth] for sagas in due.values() if depth < len(sagas)]
        if not layer:
            break
        taken += layer[: free - len(taken)]
        depth += 1
    return taken
