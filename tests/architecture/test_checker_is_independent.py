"""The checker of the chaos runs, its producers and receivers share no code with what they check."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CHAOS = ROOT / "tests" / "chaos"
INDEPENDENT = [*(CHAOS / "checker").glob("*.py"), CHAOS / "producer.py", CHAOS / "receiver.py", CHAOS / "endpoints.py"]


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files_of(module: str) -> Iterator[Path]:
    """The file of a module of the tests, and those of the packages around it."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        place = ROOT.joinpath(*parts[:length])
        yield from (path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file())


def reached(start: Path) -> dict[Path, set[str]]:
    """Every module of the tests that is loaded with this one, and what each of them imports."""
    found: dict[Path, set[str]] = {}
    waiting = [start]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = {*imported(path)}
        waiting += [file for name in found[path] if name.startswith("tests") for file in files_of(name)]
    return found


def test_nothing_that_the_checker_loads_comes_from_the_product() -> None:
    for start in INDEPENDENT:
        for path, names in reached(start).items():
            ours = {name for name in names if name.split(".")[0] == "tidings"}
            assert ours == set(), f"{start.name} loads {path.name}, which imports {ours}"


def test_what_is_loaded_is_followed() -> None:
    """The test itself can fail: the processes of the product do load it."""
    assert any("tidings" in name for names in reached(CHAOS / "nursery.py").values() for name in names)
    assert CHAOS / "checker" / "tables.py" in reached(CHAOS / "checker" / "__main__.py")
