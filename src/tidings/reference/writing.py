"""The few pieces of Markdown that every generated page is made of."""

from collections.abc import Iterable, Sequence


def head(title: str, made_from: str, says: str) -> str:
    """A title, where the page comes from, and what it is about."""
    return f"# {title}\n\n<!-- Made from {made_from} by `make docs`; change it there. -->\n\n{says.strip()}\n"


def table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(map(cell, line))} |" for line in lines) + "\n"


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def cell(text: str) -> str:
    return text.replace("|", "\\|")
