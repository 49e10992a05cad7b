"""Charts and pictures, as numbers that a template writes as SVG. Pure: the same values give the same picture."""

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Moment = datetime.datetime


@dataclass(frozen=True)
class Bar:
    """A part of a column: where it begins from the top, and how high it is."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Span:
    """What was counted from one moment on, for as long as all others of its row."""

    began_at: Moment
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Stage:
    """A box of the flow picture. `tone` is its colour, `note` a line below its number."""

    name: str
    value: str
    note: str
    tone: str
    href: str


@dataclass(frozen=True)
class Box:
    """A stage in its place."""

    stage: Stage
    x: float
    y: float


@dataclass(frozen=True)
class FlowPicture:
    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[str, ...]
    retry: str
    retry_label: tuple[float, float]
    box_width: float
    box_height: float


def ceiling(most: float) -> int:
    """The next of 1, 2, 5, 10, 20, 50 …: where an axis ends."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if factor * step >= most:
                return factor * step
        step *= 10


def spans(counts: Mapping[Moment, tuple[int, ...]], now: Moment, minutes: int, each: int, kinds: int) -> list[Span]:
    """The last `minutes` in spans of `each`, the empty ones too; the last span is the one that is under way."""
    last = _floor(now, each)
    starts = [last - datetime.timedelta(minutes=each * back) for back in reversed(range(minutes // each))]
    sums = {start: [0] * kinds for start in starts}
    for moment, values in counts.items():
        if (found := sums.get(_floor(moment, each))) is not None:
            found[:] = [one + more for one, more in zip(found, values, strict=True)]
    return [Span(start, tuple(found)) for start, found in sums.items()]


def stacked(columns: Sequence[Sequence[float]], width: float, height: float, gap: float = 0.2) -> list[list[Bar]]:
    """For each kind its bars, one for each column; the first kind stands at the bottom."""
    top = ceiling(max((sum(column) for column in columns), default=0))
    step = width / max(1, len(columns))
    kinds = len(columns[0]) if columns else 0
    bars: list[list[Bar]] = [[] for _ in range(kinds)]
    for place, column in enumerate(columns):
        base = height
        for kind, value in enumerate(column):
            tall = height * value / top
            base -= tall
            bars[kind].append(Bar(round(place * step, 2), round(base, 2), round(step * (1 - gap), 2), round(tall, 2)))
    return bars


# Column and row of each stage, in a wide picture and in a tall one.
_FLOW = ("events", "router", "sagas", "jobs", "endpoints")
_WIDE = {**{name: (place, 0) for place, name in enumerate(_FLOW)}, "tasks": (2, 1), "dead": (4, 1)}
_TALL = {**{name: (0, place) for place, name in enumerate(_FLOW)}, "tasks": (1, 1), "dead": (1, 4)}
_BOX = (160.0, 84.0)


def flow_picture(stages: Mapping[str, Stage], *, is_tall: bool = False) -> FlowPicture:
    """event → router → saga → job → endpoint, with what branches off: tasks, dead letters, and the way back."""
    places, (wide, high) = _TALL if is_tall else _WIDE, _BOX
    step = (wide + 28, high + 34) if is_tall else (wide + 50, high + 54)
    top = 0.0 if is_tall else 34.0
    at = {name: (column * step[0], top + row * step[1]) for name, (column, row) in places.items()}
    lines = [_joined(at[one], at[next], is_tall) for one, next in pairwise(_FLOW)]
    lines += [_branch(at["router"], at["tasks"]), _joined(at["endpoints"], at["dead"], not is_tall)]
    right, bottom = max(x for x, _ in at.values()) + wide, max(y for _, y in at.values()) + high
    retry, label = _way_back(at["endpoints"], at["sagas"], is_tall)
    return FlowPicture(
        right, bottom, tuple(Box(stages[name], *at[name]) for name in places), tuple(lines), retry, label, wide, high
    )


def _joined(one: tuple[float, float], other: tuple[float, float], is_down: bool) -> str:
    wide, high = _BOX
    if is_down:
        return f"M{one[0] + wide / 2:g} {one[1] + high:g}V{other[1] - 5:g}"
    return f"M{one[0] + wide:g} {one[1] + high / 2:g}H{other[0] - 5:g}"


def _branch(one: tuple[float, float], other: tuple[float, float]) -> str:
    """To the right at once if it stands beside; else down first."""
    wide, high = _BOX
    if one[1] == other[1]:
        return _joined(one, other, is_down=False)
    return f"M{one[0] + wide / 2:g} {one[1] + high:g}V{other[1] + high / 2 - 8:g}q0 8 8 8H{other[0] - 5:g}"


def _way_back(one: tuple[float, float], other: tuple[float, float], is_tall: bool) -> tuple[str, tuple[float, float]]:
    wide, high = _BOX
    if is_tall:
        x = one[0] + wide + 14
        start, end = one[1] + high / 2 - 12, other[1] + high / 2
        path = f"M{one[0] + wide:g} {start:g}H{x - 8:g}q8 0 8 -8V{end + 8:g}q0 -8 -8 -8H{other[0] + wide + 5:g}"
        return path, (x + 8, (start + end) / 2)
    y = one[1] - 20
    start, end = one[0] + wide / 2, other[0] + wide / 2
    path = f"M{start:g} {one[1]:g}V{y + 8:g}q0 -8 -8 -8H{end + 8:g}q-8 0 -8 8V{other[1] - 5:g}"
    return path, ((start + end) / 2, y - 6)


def _floor(moment: Moment, minutes: int) -> Moment:
    since_midnight = moment.hour * 60 + moment.minute
    floor = since_midnight - since_midnight % minutes
    return moment.replace(hour=floor // 60, minute=floor % 60, second=0, microsecond=0)
