"""How the command line speaks: to people on stderr, for machines as JSON, and of errors so that it helps."""

import json
from typing import Any

from rich.console import Console
from rich.text import Text

from tidings.errors import TidingsError

# What others wrote is shown as it is: words between colons are no pictures.
out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)


def show_json(value: Any) -> None:
    out.print_json(json.dumps(value))


def show_error(error: TidingsError) -> None:
    err.print(Text.assemble(("tidings:", "red"), f" {error.what}"))
    if error.remedy:
        err.print(f"  → {error.remedy}", markup=False)


def say(sentence: str) -> None:
    """To people, on stderr: what a program reads goes to stdout alone."""
    err.print(sentence, style="dim", markup=False)
