"""Explores every state that can be reached, breadth first, so that a way to a wrong one is as short as can be."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Move(Generic[State]):
    """Something that can happen. `is_fault`: the world need not do it, and nothing may depend on its being done."""

    name: str
    after: State
    is_fault: bool = False


@dataclass
class Explored(Generic[State]):
    """All that was reached, in the order in which it was; `wrongs` with the shortest way to each."""

    states: list[State] = field(default_factory=list)
    number: dict[State, int] = field(default_factory=dict)
    moves: list[list[tuple[str, int, bool]]] = field(default_factory=list)
    wrongs: list[str] = field(default_factory=list)
    _came_by: list[tuple[int, str]] = field(default_factory=list)

    @property
    def names(self) -> set[str]:
        """Of all moves that were made."""
        return {name for moves in self.moves for name, _, _ in moves}

    def way_to(self, number: int) -> str:
        names: list[str] = []
        while number:
            number, name = self._came_by[number]
            names.append(name)
        return " → ".join(reversed(names)) or "the beginning"

    def stuck(self, has_ended: Callable[[State], bool]) -> Iterator[str]:
        """States from which no end can be reached without a fault."""
        before: list[list[int]] = [[] for _ in self.states]
        for source, moves in enumerate(self.moves):
            for _, target, is_fault in moves:
                if not is_fault:
                    before[target].append(source)
        hopeful = {number for number, state in enumerate(self.states) if has_ended(state)}
        open_ends = [*hopeful]
        while open_ends:
            for source in before[open_ends.pop()]:
                if source not in hopeful:
                    hopeful.add(source)
                    open_ends.append(source)
        return (f"no end in sight after {self.way_to(n)}" for n in range(len(self.states)) if n not in hopeful)

    def _reach(self, state: State, came_by: tuple[int, str]) -> tuple[int, bool]:
        if (known := self.number.get(state)) is not None:
            return known, False
        number = self.number[state] = len(self.states)
        self.states.append(state)
        self.moves.append([])
        self._came_by.append(came_by)
        return number, True


def explore(
    start: State,
    moves: Callable[[State], Iterable[Move[State]]],
    wrongs: Callable[[State, str, State], Iterable[str]],
    most_wrongs: int = 3,
) -> Explored[State]:
    """`wrongs` says what may not be so about a move and the state that it leads to. Ends early after some of those."""
    found: Explored[State] = Explored()
    found._reach(start, (0, ""))
    waiting = deque([0])
    while waiting and len(found.wrongs) < most_wrongs:
        number = waiting.popleft()
        state = found.states[number]
        for move in moves(state):
            target, is_new = found._reach(move.after, (number, move.name))
            found.moves[number].append((move.name, target, move.is_fault))
            for wrong in wrongs(state, move.name, move.after):
                found.wrongs.append(f"{wrong}, after {found.way_to(number)} → {move.name}")
            if is_new:
                waiting.append(target)
    return found


@dataclass(frozen=True)
class Pairs:
    """What two of a kind can come to together: how many states, and what may not be."""

    states: int
    wrongs: list[str]


@dataclass(frozen=True)
class Beside(Generic[State]):
    """What two that go on by turns have to do with each other.

    `shared` moves happen to both at once, to each as far as it can. A `limited` one needs room: `has_room[n]` says
    whether there is some while both together have a `load` of n, and it is wrong that they ever have more than `most`.
    """

    shared: Callable[[str], bool]
    limited: Callable[[str], bool]
    load: Callable[[State], int]
    has_room: Sequence[bool]
    most: int


def explore_pairs(one: Explored[State], beside: Beside[State], has_ended: Callable[[State], bool]) -> Pairs:
    """Wrong is too much at once, and to stand still before the end.

    The pairs of one first state are the bits of one number: what the first can do is done for all of them at once.
    """
    table = _Table.of(one, beside)
    start = [0] * len(one.states)
    reached, fresh = start.copy(), start.copy()
    reached[0] = fresh[0] = 1
    while any(fresh):
        seen, fresh = fresh, start.copy()
        for first, seconds in enumerate(seen):
            for target, targets in table.after(first, seconds):
                new = targets & ~reached[target]
                reached[target] |= new
                fresh[target] |= new
    ended = _bits(has_ended(state) for state in one.states)
    return Pairs(sum(map(int.bit_count, reached)), [*_wrongs(one, beside, table, reached, ended)])


@dataclass(frozen=True)
class _Table:
    """The moves of one, as lists for the first of a pair and as bits for the second, by the load of the other."""

    free: list[list[int]]
    limited: list[list[int]]
    second: list[list[int]]
    shared: list[list[tuple[int, int]]]
    load: list[int]
    has_room: list[int]
    goes_on: int
    may_start: int

    @classmethod
    def of(cls, one: Explored[State], beside: Beside[State]) -> "_Table":
        own = [[move for move in moves if not beside.shared(move[0])] for moves in one.moves]
        free = [[target for name, target, _ in moves if not beside.limited(name)] for moves in own]
        limited = [[target for name, target, _ in moves if beside.limited(name)] for moves in own]
        load = [*map(beside.load, one.states)]
        second = [
            [_mask(free[n] + (limited[n] if beside.has_room[other + load[n]] else [])) for n in range(len(load))]
            for other in range(max(load) + 1)
        ]
        names = sorted({name for name in one.names if beside.shared(name)})
        targets = [{name: target for name, target, _ in moves} for moves in one.moves]
        shared = [[(of.get(name, n), 1 << of.get(name, n)) for n, of in enumerate(targets)] for name in names]
        goes_on = _bits(any(not fault and not beside.limited(name) for name, _, fault in moves) for moves in one.moves)
        room = [_bits(beside.has_room[mine + other] for other in load) for mine in range(max(load) + 1)]
        return cls(free, limited, second, shared, load, room, goes_on, _bits(map(bool, limited)))

    def after(self, first: int, seconds: int) -> Iterator[tuple[int, int]]:
        """All pairs that follow on those of this first state and these second ones."""
        if not seconds:
            return
        yield from ((target, seconds) for target in self.free[first])
        roomy = seconds & self.has_room[self.load[first]]
        yield from ((target, roomy) for target in self.limited[first])
        second = self.second[self.load[first]]
        alone, together = 0, [0] * len(self.shared)
        for number in _numbers(seconds):
            alone |= second[number]
            for place, targets in enumerate(self.shared):
                together[place] |= targets[number][1]
        yield first, alone
        yield from ((targets[first][0], mask) for targets, mask in zip(self.shared, together, strict=True))


def _wrongs(
    one: Explored[State], beside: Beside[State], table: _Table, reached: list[int], ended: int
) -> Iterator[str]:
    for first, seconds in enumerate(reached):
        too_much = _bits(table.load[first] + other > beside.most for other in table.load)
        for second in _numbers(seconds & too_much):
            yield f"too much at once after {one.way_to(first)} beside {one.way_to(second)}"
        if table.goes_on >> first & 1:
            continue
        still = seconds & ~table.goes_on
        room = table.has_room[table.load[first]]
        still &= ~room if table.may_start >> first & 1 else ~(room & table.may_start)
        for second in _numbers(still & ~ended if ended >> first & 1 else still):
            yield f"both stand still after {one.way_to(first)} beside {one.way_to(second)}"


def _mask(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _bits(truths: Iterable[bool]) -> int:
    return _mask(number for number, truth in enumerate(truths) if truth)


def _numbers(mask: int) -> Iterator[int]:
    """The places of its bits; from text, which is quicker than bit by bit."""
    text = f"{mask:b}"[::-1]
    place = text.find("1")
    while place >= 0:
        yield place
        place = text.find("1", place + 1)
