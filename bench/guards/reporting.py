"""Puts what was measured side by side: a line for each statement, one for the whole delivery, and its bar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.guards.delivery import BATCH, STATEMENTS, TRANSACTIONS
from bench.guards.measuring import Comparison, Cost, compare
from bench.usage import MICROSECONDS

# MariaDB can't do it for the 10 % that were hoped for (docs/decisions/0004-guards.md): this only keeps it from growing.
BARS = {"postgresql": 0.05, "mariadb": 0.45}
DELIVERY = "all of these"
WITH_READS = "with reads and commits"
MARKER = "the writer marker"
HEADINGS = ("statement", "CPU bare", "guarded", "guards", "wall bare", "guarded", "guards")

Costs = Mapping[str, Sequence[Cost]]


@dataclass(frozen=True)
class Line:
    name: str
    cpu: Comparison
    wall: Comparison

    @property
    def figures(self) -> dict[str, Any]:
        """Microseconds for each row, and fractions."""
        return {
            clock: {
                "bare": round(_for_each_row(comparison.cheaper), 2),
                "guarded": round(_for_each_row(comparison.dearer), 2),
                "overhead": round(comparison.overhead, 4),
                "error": round(comparison.error, 4),
            }
            for clock, comparison in (("cpu", self.cpu), ("wall", self.wall))
        }


def lines(costs: Mapping[str, Costs]) -> list[Line]:
    """The figures of one engine, from the costs of each variant."""
    guarded, bare = costs["guarded"], costs["bare"]
    found = [_line(name, (name,), bare, guarded) for name in STATEMENTS]
    found.append(_line(DELIVERY, STATEMENTS, bare, guarded))
    found.append(_line(WITH_READS, TRANSACTIONS, bare, guarded))
    if "unmarked" in costs:
        found.append(_line(MARKER, ("insert_events",), costs["unmarked"], bare))
    return found


def keeps_its_bar(engine: str, found: Sequence[Line]) -> bool:
    """By the CPU of the server, as the wall holds the client too; noise alone does not miss a bar."""
    cpu = _delivery(found).cpu
    return cpu.overhead - cpu.error <= BARS[engine]


def verdict(engine: str, found: Sequence[Line]) -> str:
    word = "kept" if keeps_its_bar(engine, found) else "missed"
    return f"{engine}: the guards cost {_delivery(found).cpu} of server CPU; the bar of {BARS[engine]:.0%} is {word}."


def row(line: Line) -> Sequence[str]:
    return (line.name, *_cells(line.cpu), *_cells(line.wall))


def _cells(comparison: Comparison) -> tuple[str, str, str]:
    return (
        f"{_for_each_row(comparison.cheaper):.1f}",
        f"{_for_each_row(comparison.dearer):.1f}",
        str(comparison),
    )


def _for_each_row(seconds: float) -> float:
    return seconds / BATCH * MICROSECONDS


def _delivery(found: Sequence[Line]) -> Line:
    (line,) = (line for line in found if line.name == DELIVERY)
    return line


def _line(name: str, statements: Sequence[str], cheaper: Costs, dearer: Costs) -> Line:
    def on(clock: str) -> Comparison:
        first, second = (
            {statement: [getattr(cost, clock) for cost in costs[statement]] for statement in statements}
            for costs in (cheaper, dearer)
        )
        return compare(first, second)

    return Line(name, on("cpu"), on("wall"))
