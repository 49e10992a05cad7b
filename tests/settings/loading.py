"""Shortcuts of these tests: load from given sources only, never from the environment of the test run."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tidings.errors import SettingsInvalid
from tidings.settings import Settings, load_settings

ROLES = ("event_router", "saga_orchestrator", "job_worker")
NOWHERE = Path("/nowhere")


def loaded(environ: Mapping[str, str] = {}, flags: Mapping[str, str] = {}, directory: Path = NOWHERE) -> Settings:
    return load_settings(environ=environ, flags=flags, roles=ROLES, directory=directory)


def loaded_from_file(directory: Path, toml: str, environ: Mapping[str, str] = {}) -> Settings:
    (directory / "tidings.toml").write_text(toml, encoding="utf-8")
    return loaded(environ, directory=directory)


def problems_of(environ: Mapping[str, str] = {}, flags: Mapping[str, str] = {}, directory: Path = NOWHERE) -> list[str]:
    with pytest.raises(SettingsInvalid) as caught:
        loaded(environ, flags, directory)
    return caught.value.problems


def problems_in_file(directory: Path, toml: str) -> list[str]:
    (directory / "tidings.toml").write_text(toml, encoding="utf-8")
    return problems_of(directory=directory)
