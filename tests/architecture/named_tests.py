"""The tests that there are, and how tables of the docs name them."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def existing_tests() -> frozenset[str]:
    return frozenset(
        f"{path.relative_to(ROOT).as_posix()}::{name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in _tests_in(ast.parse(path.read_text("utf-8")))
    )


def cells_of(row: str) -> list[str]:
    """Of a table; a bar that is escaped belongs to its cell."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def holds_only_names(cell: str) -> bool:
    return re.fullmatch(r"`[^`]+`(<br>`[^`]+`)*", cell) is not None


def _tests_in(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
