"""How the command line speaks: to people on stderr, for machines as JSON, and of errors so that it helps."""

import json
from typing import Any

from rich.console import Console

from tidings.errors import TidingsError

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def show_json(value: Any) -> None:
    out.print_json(json.dumps(value))


def show_error(error: TidingsError) -> None:
    err.print(f"[red]tidings:[/] {plain(error.what)}", markup=True)
    if error.remedy:
        err.print(f"  → {error.remedy}", markup=False)


def plain(text: str) -> str:
    """Foreign text, where our own has markup: it is shown as it is."""
    return text.replace("[", "\\[")


def say(sentence: str) -> None:
    """To people, on stderr: what a program reads goes to stdout alone."""
    err.print(sentence, style="dim", markup=False)
