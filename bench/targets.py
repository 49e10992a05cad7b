"""What the product should reach, as ratios in one run on two cores with everything on; who misses is told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """`bar` is the least, or with `at_most` the most; in `unit`, or a ratio."""

    what: str
    bar: float
    at_most: bool = False
    unit: str = ""

    def is_met(self, figure: float, margin: float = 0.0) -> bool:
        """`margin` is the part of the bar that may be missing, for noise."""
        return figure <= self.bar * (1 + margin) if self.at_most else figure >= self.bar * (1 - margin)


DELIVER = {
    "http": Target("deliver, fan-out 3, http: part of the limit", 0.45),
    "https": Target("deliver, fan-out 3, TLS: part of the limit", 0.35),
    "mariadb": Target("deliver, MariaDB: part of our own PostgreSQL", 0.65),
    "ingest": Target("deliver, with ingest: part of without", 0.8),
    "aiohttp": Target("deliver: times the same with aiohttp", 2.5),
}
INGEST = {
    "single": Target("ingest by HTTP, single: part of a bare ASGI app", 0.6),
    "batch": Target("ingest by HTTP, batches: part of the bare INSERT", 0.6),
}
PEERS = {
    "graphile-worker": Target("tasks drained: times graphile-worker", 2),
    "pgqueuer": Target("tasks drained: times pgqueuer", 4),
    "procrastinate": Target("tasks drained: times procrastinate", 100),
}
GROWTH = Target("growth: cost with a long backlog, times that with a short one", 1.3, at_most=True)
BLOAT = Target("bloat: rate at the end, part of that at the beginning", 0.85)
HALF_LOAD = Target("latency at half load, p99", 250, at_most=True, unit=" ms")
MEMORY = Target("memory of a role at a long backlog", 256, at_most=True, unit=" MB")


@dataclass(frozen=True)
class Verdict:
    where: str
    target: Target
    figure: float
    is_met: bool

    def __str__(self) -> str:
        word = "kept" if self.is_met else "MISSED"
        sign = "≤" if self.target.at_most else "≥"
        return (
            f"{word:<7}{self.where}: {self.target.what}:"
            f" {self.figure:.2f}{self.target.unit} ({sign} {self.target.bar:g})"
        )


def judge(where: str, figures: Iterable[tuple[Target, float]], margin: float = 0.0) -> list[Verdict]:
    return [Verdict(where, target, figure, target.is_met(figure, margin)) for target, figure in figures]


def as_json(verdicts: Iterable[Verdict]) -> list[Mapping[str, object]]:
    return [
        {"where": one.where, "what": one.target.what, "figure": one.figure, "bar": one.target.bar, "met": one.is_met}
        for one in verdicts
    ]
