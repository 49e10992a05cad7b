"""Runs the command line as a process of its own and waits for its end."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.database import Database
from tests.support.processes import INHERITED


def run(*arguments: str, cwd: Path, exit: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """`tidings …` with a bare environment; fails if it ends otherwise than with `exit`, or shows a stack trace."""
    bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "-m", "tidings", *arguments],
        cwd=cwd,
        env={**bare, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ended.returncode == exit, f"exit {ended.returncode}, not {exit}\n{ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr
    return ended


def single_login(database: Database) -> dict[str, str]:
    """The environment of an installation whose processes share the admin's login."""
    return {
        "TIDINGS_DATABASE_URL": database.admin_url,
        "TIDINGS_SCHEMA": database.names.schema,
        "TIDINGS_PREFIX": database.names.prefix,
    }
