"""Wall and server CPU of single statements, and how far two installations lie apart in them.

Whatever else a machine does only adds to a measurement. So a statement costs what its lower quartile says: of all
figures that were tried on a busy machine it is the one that came out alike again.
"""

import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.quantiles import lower_quartile

_RESAMPLES = 400


@dataclass(frozen=True)
class Cost:
    """Seconds of one statement: as its client waits for it, and as its server's thread works on it."""

    wall: float
    cpu: float


class Meter:
    """Keeps what each statement cost, in the order of the rounds."""

    def __init__(self) -> None:
        self.costs: dict[str, list[Cost]] = defaultdict(list)

    @contextmanager
    def measuring(self, name: str, thread: int) -> Iterator[None]:
        cpu, wall = cpu_seconds(thread), time.perf_counter()
        yield
        wall = time.perf_counter() - wall
        self.costs[name].append(Cost(wall, cpu_seconds(thread) - cpu))


def cpu_seconds(thread: int) -> float:
    """From Linux's own account in nanoseconds; what psutil reads is in hundredths of a second."""
    return int(Path(f"/proc/{thread}/schedstat").read_text().split()[0]) / 1e9


@dataclass(frozen=True)
class Comparison:
    """Two costs in seconds, by how much the second is dearer, and half the width of that figure's 95 % interval."""

    cheaper: float
    dearer: float
    error: float

    @property
    def overhead(self) -> float:
        return self.dearer / self.cheaper - 1

    def __str__(self) -> str:
        return f"{self.overhead:+.1%} ± {self.error:.1%}"


Series = Mapping[str, Sequence[float]]


def compare(cheaper: Series, dearer: Series) -> Comparison:
    """The sums over the statements; the error by bootstrap over the rounds, which the two went through side by side."""
    rounds = range(len(next(iter(cheaper.values()))))
    chance = random.Random(1)
    drawn = sorted(
        _typical(dearer, picked) / _typical(cheaper, picked)
        for picked in (chance.choices(rounds, k=len(rounds)) for _ in range(_RESAMPLES))
    )
    low, high = drawn[round(0.025 * _RESAMPLES)], drawn[round(0.975 * _RESAMPLES) - 1]
    return Comparison(_typical(cheaper, rounds), _typical(dearer, rounds), (high - low) / 2)


def _typical(series: Series, rounds: Sequence[int]) -> float:
    return sum(lower_quartile([costs[number] for number in rounds]) for costs in series.values())
