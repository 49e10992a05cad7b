"""The command line on the installation of a test."""

from pathlib import Path

import pytest

from tests.support.commands import Shell
from tests.support.database import Database


@pytest.fixture
def shell(engine: Database, tmp_path: Path) -> Shell:
    return Shell(engine, tmp_path)
