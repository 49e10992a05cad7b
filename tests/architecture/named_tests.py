"""The tests that there are, by the names under which pages of the docs speak of them."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


@functools.cache
def existing_tests(root: Path = ROOT) -> frozenset[str]:
    return frozenset(
        f"{path.relative_to(root).as_posix()}::{name}"
        for path in (root / "tests").rglob("test_*.py")
        for name in _tests_in(ast.parse(path.read_text("utf-8")))
    )


def _tests_in(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
