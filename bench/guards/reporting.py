"""Puts what was measured side by side: a line for each statement, one for the whole delivery, and its bar."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from bench.guards.delivery import BATCH, STATEMENTS
from bench.guards.measuring import Cost, Overhead, overhead

BARS = {"postgresql": 0.05, "mariadb": 0.10}
DELIVERY = "the whole delivery"
MARKER = "the writer marker, apart"

Costs = Mapping[str, Sequence[Cost]]


@dataclass(frozen=True)
class Line:
    """Medians in microseconds for each row, and what lies between them."""

    statement: str
    bare: Cost
    guarded: Cost
    wall: Overhead
    cpu: Overhead


def lines(costs: Mapping[str, Costs]) -> list[Line]:
    """The figures of one engine, from the costs of each variant."""
    guarded, bare = costs["guarded"], costs["bare"]
    found = [_line(name, bare[name], guarded[name]) for name in STATEMENTS]
    found.append(_line(DELIVERY, _rounds(bare), _rounds(guarded)))
    if "unmarked" in costs:
        found.append(_line(MARKER, costs["unmarked"]["insert_events"], bare["insert_events"]))
    return found


def keeps_its_bar(engine: str, found: Sequence[Line]) -> bool:
    """By the CPU of the server: the wall also holds the client and whatever else the machine does."""
    return _whole(found).cpu.value <= BARS[engine]


def verdict(engine: str, found: Sequence[Line]) -> str:
    word = "[green]kept[/]" if keeps_its_bar(engine, found) else "[red]missed[/]"
    return f"{engine}: a delivery costs {_whole(found).cpu} server CPU; the bar of {BARS[engine]:.0%} is {word}."


def table(engine: str, found: Sequence[Line], rounds: int) -> Table:
    shown = Table(title=f"{engine}: µs for each row, medians of {rounds} batches of {BATCH}", title_justify="left")
    shown.add_column("statement")
    for heading in ("CPU bare", "guarded", "guards cost", "wall bare", "guarded", "guards cost"):
        shown.add_column(heading, justify="right")
    for line in found:
        shown.add_row(
            line.statement,
            f"{line.bare.cpu:.2f}",
            f"{line.guarded.cpu:.2f}",
            str(line.cpu),
            f"{line.bare.wall:.2f}",
            f"{line.guarded.wall:.2f}",
            str(line.wall),
            style="bold" if line.statement == DELIVERY else "",
        )
    return shown


def _whole(found: Sequence[Line]) -> Line:
    (line,) = (line for line in found if line.statement == DELIVERY)
    return line


def _rounds(costs: Costs) -> list[Cost]:
    """Each round's statements in one sum."""
    return [sum(costs_, Cost(0, 0)) for costs_ in zip(*(costs[name] for name in STATEMENTS), strict=True)]


def _line(name: str, bare: Sequence[Cost], guarded: Sequence[Cost]) -> Line:
    return Line(
        name,
        _median(bare),
        _median(guarded),
        wall=overhead([cost.wall for cost in guarded], [cost.wall for cost in bare]),
        cpu=overhead([cost.cpu for cost in guarded], [cost.cpu for cost in bare]),
    )


def _median(costs: Sequence[Cost]) -> Cost:
    scale = 1e6 / BATCH
    return Cost(
        statistics.median(cost.wall for cost in costs) * scale, statistics.median(cost.cpu for cost in costs) * scale
    )
