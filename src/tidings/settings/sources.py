"""Reads the settings: `tidings.toml` < `TIDINGS_*` < flags. All problems of all sources are told at once."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from tidings.errors import SettingsInvalid
from tidings.settings.assembly import assembled, broken_checks, default_values
from tidings.settings.catalog import Setting, all_settings, did_you_mean, quoted_if_odd
from tidings.settings.document import Finding, Given, findings_in_file
from tidings.settings.sections import Settings
from tidings.settings.values import BadValue

_CONFIG = "TIDINGS_CONFIG"
_FOR_TESTS = "TIDINGS_TEST_"


def load_settings(
    *,
    flags: Mapping[str, str] = {},
    environ: Mapping[str, str] = os.environ,
    roles: Collection[str] = (),
    directory: Path = Path("."),
) -> Settings:
    """The settings in force, or SettingsInvalid with every problem there is.

    Flags are named like settings (`lease_seconds`); the flag `config` names the file, as TIDINGS_CONFIG does.
    """
    known = all_settings(roles)
    findings = [
        *_in_config(flags.get("config") or environ.get(_CONFIG), directory, known),
        *_in_environment(environ, known),
        *_in_flags(flags, known),
    ]
    return _settings_from(findings, directory)


def _settings_from(findings: list[Finding], directory: Path) -> Settings:
    problems = [finding for finding in findings if isinstance(finding, str)]
    values, places, refused = default_values(), dict[str, str](), set[str]()
    for given in (finding for finding in findings if isinstance(finding, Given)):
        places[given.setting.name] = given.place
        try:
            values[given.setting] = given.setting.read(given.raw)
        except BadValue as bad:
            problems.append(f"{given.place}: {bad}")
            refused.add(given.setting.name)
    settings = assembled(values, given=places, directory=directory)
    problems += broken_checks(settings, places, refused)
    if problems:
        raise SettingsInvalid(problems)
    return settings


def _in_config(chosen: str | None, directory: Path, known: list[Setting]) -> Iterable[Finding]:
    name = chosen or "tidings.toml"
    if not chosen and not os.path.lexists(directory / name):
        return ()
    return findings_in_file(directory / name, name if name.isprintable() else repr(name), known)


def _in_environment(environ: Mapping[str, str], known: list[Setting]) -> Iterator[Finding]:
    by_name = {setting.in_environment: setting for setting in known}
    for name in sorted(environ):
        if name == _CONFIG or name.startswith(_FOR_TESTS) or not name.startswith("TIDINGS_"):
            continue
        place = f"environment: {quoted_if_odd(name)}"
        if name in by_name:
            yield Given(by_name[name], place, environ[name])
        else:
            yield f"{place}: there is no such setting{did_you_mean(name.upper(), [*by_name, _CONFIG])}"


def _in_flags(flags: Mapping[str, str], known: list[Setting]) -> Iterator[Finding]:
    by_name = {setting.as_flag: setting for setting in known}
    for name, text in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if flag in by_name:
            yield Given(by_name[flag], f"flag: {flag}", text)
        elif name != "config":
            yield f"flag: --{quoted_if_odd(flag[2:])}: there is no such setting{did_you_mean(flag, by_name)}"
