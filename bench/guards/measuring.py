"""Wall and server CPU of single statements, and how far two series of them lie apart."""

import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

_RESAMPLES = 400


@dataclass(frozen=True)
class Cost:
    """Seconds of one statement: as its client waits for it, and as its server works on it."""

    wall: float
    cpu: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.wall + other.wall, self.cpu + other.cpu)


class Meter:
    """Keeps what each statement cost, in the order of the rounds."""

    def __init__(self) -> None:
        self.costs: dict[str, list[Cost]] = defaultdict(list)

    @contextmanager
    def measuring(self, name: str, process: int) -> Iterator[None]:
        cpu, wall = cpu_seconds(process), time.perf_counter()
        yield
        wall = time.perf_counter() - wall
        self.costs[name].append(Cost(wall, cpu_seconds(process) - cpu))


def cpu_seconds(process: int) -> float:
    """All CPU time of a process. psutil counts in hundredths of a second; Linux's own clock in nanoseconds."""
    if sys.platform == "linux":
        return time.clock_gettime(~process << 3 | 2)  # what clock_getcpuclockid(3) gives
    times = psutil.Process(process).cpu_times()
    return times.user + times.system


@dataclass(frozen=True)
class Overhead:
    """By how much one series lies above another, as a fraction, with the half width of its 95 % interval."""

    value: float
    error: float

    def __str__(self) -> str:
        return f"{self.value:+.1%} ± {self.error:.1%}"


def overhead(dearer: Sequence[float], cheaper: Sequence[float]) -> Overhead:
    """The ratio of the medians; its error by bootstrap over the rounds, in which the two were measured side by side."""
    pairs = list(zip(dearer, cheaper, strict=True))
    chance = random.Random(1)
    drawn = sorted(_ratio(chance.choices(pairs, k=len(pairs))) for _ in range(_RESAMPLES))
    low, high = drawn[round(0.025 * _RESAMPLES)], drawn[round(0.975 * _RESAMPLES) - 1]
    return Overhead(_ratio(pairs) - 1, (high - low) / 2)


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    dearer, cheaper = zip(*pairs, strict=True)
    return statistics.median(dearer) / statistics.median(cheaper)
