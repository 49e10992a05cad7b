"""Who may import whom: the table of ARCHITECTURE.md, kept true."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tidings"

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "tables": {"model"},
    "flow": set(),
    "ids": set(),
    "decisions": {"model", "errors"},
    "telemetry": {"model"},
    "settings": {"errors"},
    "db": {"errors", "flow", "tables", "telemetry"},
    "vault": {"errors"},
    "courier": {"errors", "model", "decisions", "telemetry"},
    "tasks": {"errors", "model", "decisions"},
    "roles": {
        "courier",
        "tasks",
        "model",
        "decisions",
        "telemetry",
        "errors",
        "vault",
        "db.asking",
        "db.operations",
        "db.engine",
        "db.halving",
        "db.session",
        "runtime.outbox",
    },
    "client": {
        "model",
        "decisions",
        "errors",
        "ids",
        "roles.ingest",
        "roles.task_producer",
        "db.asking",
        "db.dialect",
        "db.statements",
    },
    "remote": {"client", "decisions.texts", "errors", "model.event"},
    "runtime": {"telemetry", "errors", "db.engine", "db.operations"},
    "console": {"api", "db.engine", "db.operations", "decisions", "errors", "model", "roles", "vault"},
    "api": {
        "console.app",
        "db.engine",
        "db.migrations.migrator",
        "db.operations",
        "decisions",
        "errors",
        "ids",
        "model",
        "roles",
        "settings",
        "telemetry",
        "vault",
        "wiring",
    },
    "processes": {
        "api.server",
        "courier",
        "db.engine",
        "decisions",
        "model",
        "roles",
        "runtime",
        "settings",
        "tasks",
        "telemetry",
        "wiring",
    },
    "wiring": {"db", "decisions", "flow", "settings", "errors", "roles", "telemetry", "vault"},
    "doctor": {"db", "flow", "decisions", "model", "roles", "wiring", "errors"},
    "demo": {"decisions", "errors", "ids", "model", "processes", "roles", "runtime", "telemetry", "wiring"},
    "listener": {"courier.signing", "decisions", "errors"},
    "reference": {
        "api",
        "cli.commands",
        "courier.error_codes",
        "decisions.retrying",
        "flow",
        "model",
        "settings",
        "tables",
        "telemetry",
    },
    "cli": {
        "processes",
        "db",
        "decisions",
        "demo",
        "doctor",
        "errors",
        "flow",
        "ids",
        "listener",
        "model",
        "roles",
        "runtime",
        "settings",
        "telemetry",
        "vault",
        "wiring",
    },
    "__init__": {"client", "courier.signing", "decisions.verifying", "errors", "model", "remote", "tasks"},
    "__main__": {"cli"},
}
IMPURE = {"asyncio", "os", "random", "secrets", "socket", "time", "uuid", "logging", "pathlib"}


def part_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_allowed(imported: str, part: str) -> bool:
    return any(f"{imported}.".startswith(f"{allowed}.") for allowed in (part, *ALLOWED[part]))


def test_every_part_of_the_package_is_in_the_table() -> None:
    assert {part_of(path) for path in modules()} == set(ALLOWED)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_what_its_part_may(path: Path) -> None:
    ours = [name.removeprefix("tidings.") for name in imports(path) if name.startswith("tidings.")]
    assert [name for name in ours if name != "__version__" and not is_allowed(name, part_of(path))] == []


def test_roles_never_import_roles() -> None:
    for path in (SOURCE / "roles").glob("*/*.py"):
        others = [n for n in imports(path) if n.startswith("tidings.roles.") and n.split(".")[2] != path.parent.name]
        assert others == []


@pytest.mark.parametrize("part", ["model", "decisions"])
def test_pure_code_reads_no_clock_and_no_world(part: str) -> None:
    found = {name.split(".")[0] for path in (SOURCE / part).rglob("*.py") for name in imports(path)}
    assert found & IMPURE == set()
    # Moments may be computed with; what time it is, is an argument.
    asked = {
        f"{path.name}:{node.lineno}"
        for path in (SOURCE / part).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"} and _is_of_datetime(node.value)
    }
    assert asked == set()


def _is_of_datetime(node: ast.expr) -> bool:
    """`datetime`, `datetime.datetime`, `datetime.date`, and not something of our own that is called now."""
    return any(isinstance(part, ast.Name) and part.id in {"datetime", "date"} for part in ast.walk(node))


def test_nobody_asks_which_engine_it_is_outside_of_db() -> None:
    engines = ("postgresql", "mariadb", "mysql")
    for path in modules():
        if part_of(path) in {"db", "tables", "settings"}:
            continue
        compared = [
            node
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Compare)
            and any(isinstance(side, ast.Constant) and side.value in engines for side in ast.walk(node))
        ]
        assert not compared, f"{path}:{compared[0].lineno} compares the engine's name"
