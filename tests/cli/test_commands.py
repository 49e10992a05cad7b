"""The command line as a whole: every command is tried, teaches, starts fast, and can be completed."""

import ast
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from tests.support.commands import run
from tidings.cli.commands import COMMANDS, load
from tidings.cli.database import show_findings
from tidings.cli.output import show_error
from tidings.decisions.diagnosing import Finding, Health
from tidings.errors import NotFound
from tidings.reference.command_line import leaves

TESTS = Path(__file__).parents[1]
SLOW_TO_LOAD = ("asyncpg", "asyncmy", "fastapi", "uvicorn", "msgspec", "structlog", "cryptography", "prometheus_client")
# How tests begin a process of the product, whichever way.
STARTING = {"run", "says", "json", "types", "tidings", "hurried", "call"}
LEAVES = dict(leaves())


def test_the_table_has_what_the_modules_have() -> None:
    for module in {command.module for command in COMMANDS.values()}:
        made = typer.Typer()
        made.callback()(lambda: None)
        next(one for one in COMMANDS.values() if one.module == module).loaded().add_to(made)
        group = typer.main.get_command(made)
        assert isinstance(group, TyperGroup)
        assert set(group.commands) == {name for name, command in COMMANDS.items() if command.module == module}


def spoken() -> set[tuple[str, ...]]:
    """Which commands the tests give to processes: the first two words of each, and the first alone."""
    found: set[tuple[str, ...]] = set()
    texts = [path.read_text("utf-8") for path in TESTS.rglob("*.py")]
    for text in (text for text in texts if "support.commands" in text or "support.processes" in text):
        said = [words for node in ast.walk(ast.parse(text)) for words in words_of(node)]
        # A function that says the first word, and is given the others.
        firsts = {words[0] for words in said if words[1:2] == ("*",)}
        found |= {words[:2] for words in said} | {(first, word) for first in firsts for words in said for word in words}
        found |= {words[:1] for words in said}
    return found


def words_of(node: ast.AST) -> list[tuple[str, ...]]:
    """What a call that starts a process says, or a list of words that one is given; `*` is what is not said here."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=parts) if name in STARTING:
            pass
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if len(parts) > 1:
            pass
        case _:
            return []
    said = ["*" if isinstance(one, ast.Starred) else getattr(one, "value", "") for one in parts]
    words = tuple(word if isinstance(word, str) else "" for word in said)
    return [words] if words else []


def test_every_command_is_run_by_some_test() -> None:
    """As a process: `run(…)`, `shell.says(…)`, `tidings(…)` and their like are given its words."""
    said = spoken()
    assert [" ".join(words) for words in LEAVES if words not in said] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_can_be_run_as_they_stand(name: str) -> None:
    assert COMMANDS[name].examples
    for example in COMMANDS[name].examples:
        words = shlex.split(re.sub(r".*\| |psql \"\$\((.*)\)\"| > .*", r"\1", example))
        assert words[:2] == ["tidings", name], example
        parse(words[1:])


def parse(words: list[str]) -> None:
    """As far as it goes without doing anything. The flags of settings are taken out before, by `main`."""
    settings = {"--port", "--data-dir", "--app"} if words[0] in ("up", "run") else set()
    kept = [word for at, word in enumerate(words) if word not in settings and words[at - 1] not in settings]
    command = load(kept[0])
    if hasattr(command, "commands"):
        command, kept = command.commands[kept[1]], kept[1:]
    command.make_context(kept[0], kept[1:])


def test_help_teaches(tmp_path: Path) -> None:
    whole = run("--help", cwd=tmp_path).stdout
    assert "Usage: tidings " in whole
    for name, command in COMMANDS.items():
        assert re.search(rf"^\s+{name}\s", whole, re.MULTILINE), name
        assert command.says.split("…")[0][:40] in whole
    assert "Exit codes" in whole
    of_one = run("events", "--help", cwd=tmp_path).stdout
    assert "Examples:\n    tidings events list --type order.paid" in of_one
    assert "did you mean" in run("event", cwd=tmp_path, exit=2).stderr.lower()
    assert run(cwd=tmp_path, exit=2).stderr == whole


@pytest.mark.parametrize("text", [r"no \[/x] here", "[red]no[/]", "a :cat: b", "C:\\"])
def test_what_others_wrote_is_shown_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Markup and pictures are ours alone."""
    show_error(NotFound(text, text))
    assert capsys.readouterr().err == f"tidings: {text}\n  → {text}\n"
    show_findings([Finding(text, Health.WRONG, text, text)], json=False)
    assert capsys.readouterr().out.count(text) == 3


def loaded_by(*arguments: str) -> set[str]:
    """Which of the slow ones a command loads until it has nothing more to do."""
    code = (
        "import sys\nfrom tidings.cli.main import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(repr([name for name in {SLOW_TO_LOAD} if name in sys.modules]))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(ast.literal_eval(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["events", "--help"], ["url", "--help"]])
def test_what_needs_no_database_loads_nothing_of_one(arguments: list[str]) -> None:
    assert loaded_by(*arguments) == set()


def test_a_command_loads_the_driver_of_its_own_engine_only() -> None:
    away = "127.0.0.1:9/x"
    options = ["--connect-patience", "0s"]
    assert loaded_by("gates", "list", "--database-url", f"postgresql://u@{away}", *options) == {"asyncpg"}
    loaded = loaded_by("gates", "list", "--database-url", f"mysql://u:p@{away}", *options)
    assert loaded - {"cryptography"} == {"asyncmy"}  # which may load the other to log in


def completed(shell: str, words: str, tmp_path: Path) -> str:
    """What the shell is told when somebody presses Tab behind these words."""
    return run(
        cwd=tmp_path,
        env={
            "_TIDINGS_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": words,
            "COMP_CWORD": str(words.count(" ")),
            "_TYPER_COMPLETE_ARGS": words,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    ).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_their_verbs_and_values(shell: str, tmp_path: Path) -> None:
    assert "events" in completed(shell, "tidings ev", tmp_path)
    assert "requeue" in completed(shell, "tidings dead-letters re", tmp_path)
    assert "PendingRetry" in completed(shell, "tidings sagas list --status Pending", tmp_path)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_can_be_had(shell: str, tmp_path: Path) -> None:
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    said = run("--show-completion", shell, cwd=tmp_path, env=env).stdout
    assert "_TIDINGS_COMPLETE" in said


@pytest.mark.slow
def test_bench_measures_each_stage_and_leaves_nothing(tmp_path: Path) -> None:
    said = json.loads(run("bench", "--events", "300", "--json", cwd=tmp_path).stdout)
    assert [(stage["name"], stage["events"]) for stage in said] == [
        ("published", 300),
        ("routed", 300),
        ("delivered", 300),
    ]
    assert all(stage["per_second"] > 1 for stage in said)
    assert list(tmp_path.iterdir()) == []
