"""Runs the command line as a process of its own and waits for its end."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from tests.support.database import Database
from tests.support.forking import Forked
from tests.support.processes import INHERITED

_SECONDS = 90


def run(
    *arguments: str, cwd: Path, exit: int = 0, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`tidings …` with `env` and little else around it; fails if it ends otherwise than with `exit`, or a trace."""
    bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
    argv = [sys.executable, "-m", "tidings", *arguments]
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = Forked(argv, {**bare, "COLUMNS": "200", **(env or {})}, cwd, stdout.fileno(), stderr.fileno())
        try:
            code = process.wait(_SECONDS)
        finally:
            process.kill()
        ended = subprocess.CompletedProcess(argv, code, _text(stdout), _text(stderr))
    assert ended.returncode == exit, f"exit {ended.returncode}, not {exit}\n{ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr
    return ended


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()


def single_login(database: Database) -> dict[str, str]:
    """The environment of an installation whose processes share the admin's login."""
    return {
        "TIDINGS_DATABASE_URL": database.admin_url,
        "TIDINGS_SCHEMA": database.names.schema,
        "TIDINGS_PREFIX": database.names.prefix,
    }


class Shell:
    """The command line on one installation."""

    def __init__(self, database: Database, cwd: Path) -> None:
        self.environment = {**database.environment(), "TIDINGS_LOG_LEVEL": "warning"}
        self.cwd = cwd

    def says(self, *arguments: str, exit: int = 0, **environment: str) -> str:
        """What it says to people: both streams."""
        ended = run(*arguments, cwd=self.cwd, exit=exit, env=self.environment | environment)
        return ended.stdout + ended.stderr

    def json(self, *arguments: str, exit: int = 0) -> Any:
        return json.loads(run(*arguments, "--json", cwd=self.cwd, exit=exit, env=self.environment).stdout)

    def doctor(self) -> dict[str, dict[str, str]]:
        """The findings by their subject. The test servers give up durability for speed, hence exit 1."""
        return {finding["subject"]: finding for finding in self.json("doctor", exit=1)}
