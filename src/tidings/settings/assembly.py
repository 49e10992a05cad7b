"""Puts single values together: fills in defaults, makes the sections, asks the checks between settings."""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, get_type_hints

from tidings.settings.catalog import ROLE_URLS, Setting, all_settings
from tidings.settings.checks import CHECKS
from tidings.settings.sections import Settings


@cache
def defaults_text() -> str:
    return files("tidings.settings").joinpath("defaults.toml").read_text(encoding="utf-8")


def default_values() -> dict[Setting, object]:
    document = tomllib.loads(defaults_text())
    return {setting: setting.read(document[setting.section][setting.key]) for setting in all_settings()}


def assembled(values: Mapping[Setting, object], *, given: Collection[str], directory: Path) -> Settings:
    settings = _sections(values)
    installation = settings.installation
    data_dir = (directory / installation.data_dir).absolute()
    settings = replace(settings, installation=replace(installation, data_dir=data_dir))
    return settings if "timeout_seconds" in given else _with_fitting_timeout(settings)


def broken_checks(settings: Settings, places: Mapping[str, str], refused: Collection[str]) -> Iterator[str]:
    """A setting that could not be read is left out of the comparison: its own problem comes first."""
    for check, names in CHECKS.items():
        problem = None if any(name in refused for name in names) else check(settings)
        if problem:
            yield f"{' and '.join(places[name] for name in names if name in places)}: {problem}"


def _sections(values: Mapping[Setting, object]) -> Settings:
    types = get_type_hints(Settings)
    sections: dict[str, dict[str, Any]] = {name: {} for name in types}
    sections["database"]["urls"] = {
        setting.key: url for setting, url in values.items() if setting.section == ROLE_URLS and url
    }
    for setting, value in values.items():
        if setting.section != ROLE_URLS:
            sections[setting.section][setting.key] = value
    return Settings(**{name: types[name](**fields) for name, fields in sections.items()})


def _with_fitting_timeout(settings: Settings) -> Settings:
    """So that a short lease can be set alone."""
    timeout = min(settings.sending.timeout_seconds, settings.worker.longest_timeout)
    return replace(settings, sending=replace(settings.sending, timeout_seconds=timeout))
