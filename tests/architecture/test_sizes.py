"""Guides, not walls, but with a hard limit: what is longer than this is two things."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tidings"
LONGEST_MODULE, LONGEST_FUNCTION = 400, 50
# Data that is read from top to bottom, not code.
TABLES_OF_DATA = {"tables.py", "flow.py", "notices.py"}


def test_no_module_is_longer_than_400_lines() -> None:
    long = {path.name for path in SOURCE.rglob("*.py") if len(path.read_text("utf-8").splitlines()) > LONGEST_MODULE}
    assert long - TABLES_OF_DATA == set()


def test_no_function_is_longer_than_50_lines() -> None:
    long = [
        f"{path.name}:{node.name}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert silent == []
