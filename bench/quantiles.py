"""What is typical of many measurements, and what is rare among them."""

from collections.abc import Iterable


def quantile(values: Iterable[float], part: float) -> float:
    """The one that so large a part of all lies below; not a number where there is none."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else float("nan")


def lower_quartile(values: Iterable[float]) -> float:
    """What something costs: whatever else the machine does only adds to it."""
    return quantile(values, 0.25)
