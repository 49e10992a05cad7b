"""The command line on the installation of a test."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.unprivileged import fresh_directory


@pytest.fixture
def shell(engine: Database, tmp_path: Path) -> Shell:
    return Shell(engine, tmp_path)


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder that the embedded server's unprivileged user may enter."""
    made = fresh_directory("tidings-cli-")
    yield made
    shutil.rmtree(made, ignore_errors=True)
