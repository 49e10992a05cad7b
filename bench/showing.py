"""How figures are shown: one kind of table for all programs, and a line that says what is being measured."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

OF = "of which"
out = Console(highlight=False, soft_wrap=True, width=160)


def table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> Table:
    """The first `texts` columns are words and the others figures, but for what a figure is made `of`."""
    shown = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        is_text = number < texts or heading == OF
        shown.add_column(heading, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    return shown


def say(what: str) -> None:
    """What is going on, for whoever waits; not among the figures."""
    print(what, file=sys.stderr, flush=True)


def part(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
