"""docs/reference/command-line.md, from the commands themselves."""

from collections.abc import Iterator
from typing import Any

from tidings.cli.commands import COMMANDS, load
from tidings.reference.writing import cell, head, one_line

_SAYS = """
`tidings COMMAND --help` says the same, with the defaults. Tables are for people; `--json` gives machines all there is.
What people should know but no program reads goes to stderr. Every setting is a flag too ([settings](settings.md)):
`--data-dir ./here`, `--lease-seconds 30s`.

`tidings --install-completion` teaches your shell (bash, zsh, fish, PowerShell) to complete commands and options.

| exit | means |
|---|---|
| 0 | done; of `doctor`, `reconcile`, `migrate --check`, `demo`: all is well |
| 1 | it is not so, or could not be done: missing, refused, out of reach; `doctor` or `reconcile` found something |
| 2 | asked wrongly: no such command or option, a value that can't be taken, unusable settings. Nothing was done |
| 130 | interrupted by Ctrl-C; `up`, `run` and `listen` end with 0 when they are told to stop |
"""


def command_line_reference() -> str:
    """The whole page."""
    title = head("The command line", "src/tidings/cli", _SAYS)
    return "\n".join([title, *(line for name in COMMANDS for line in _command(name))])


def leaves() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that can be run, by its words."""
    for name in COMMANDS:
        loaded = load(name)
        if hasattr(loaded, "commands"):
            yield from (((name, sub), command) for sub, command in loaded.commands.items())
        else:
            yield (name,), loaded


def _command(name: str) -> Iterator[str]:
    loaded = load(name)
    yield from (f"## tidings {name}", "", one_line(loaded.help), "")
    yield from ("```", *COMMANDS[name].examples, "```", "")
    if not hasattr(loaded, "commands"):
        yield from _parameters(loaded)
        return
    for sub, command in loaded.commands.items():
        arguments = " ".join(map(_argument, _arguments(command)))
        yield from (f"### tidings {name} {sub} {arguments}".rstrip(), "", one_line(command.help), "")
        yield from _parameters(command)


def _parameters(command: Any) -> Iterator[str]:
    rows = [(f"`{_argument(one)}`", one.help) for one in _arguments(command) if one.help]
    rows += [(_options(one), one.help) for one in command.params if one.param_type_name == "option" and one.help]
    if rows:
        yield from ("| | |", "|---|---|")
        yield from (f"| {cell(name)} | {cell(one_line(help))} |" for name, help in rows)
        yield ""


def _arguments(command: Any) -> list[Any]:
    return [one for one in command.params if one.param_type_name == "argument"]


def _options(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    return ", ".join(f"`{name}`" for name in names)


def _argument(one: Any) -> str:
    """As it is called: NAME, or [NAME] where it may be left out."""
    called = one.metavar or one.name.upper()
    return called if one.required or called.startswith("[") else f"[{called}]"
