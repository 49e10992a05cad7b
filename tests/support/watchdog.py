"""Ends what the tests started when the test process itself is gone, however it went.

A second process reads a pipe from the test process. The pipe closes by itself, even on SIGKILL; whatever is
guarded at that moment is killed and removed. This needs no hook between fork and exec, and works from any
thread and on macOS.
"""

import atexit
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from tests.support import families

ROOT = Path(__file__).parents[2]


def guard_process(pid: int) -> None:
    """Kill this process and its family when the tests are gone."""
    _tell(f"+process {pid}")


def release_process(pid: int) -> None:
    """Its family has ended already."""
    _tell(f"-process {pid}")


def guard_directory(path: Path) -> None:
    """Remove this directory when the tests are gone."""
    _tell(f"+directory {path}")


def release_directory(path: Path) -> None:
    """It was removed already."""
    _tell(f"-directory {path}")


def _tell(order: str) -> None:
    pipe = _watchdog().stdin
    assert pipe is not None
    pipe.write(f"{order}\n".encode())
    pipe.flush()


@cache
def _watchdog() -> subprocess.Popen[bytes]:
    # In a session of its own, Ctrl-C and a kill of the tests' process group pass it by.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.watchdog"],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    atexit.register(process.communicate)
    return process


def watch() -> None:
    """Follow the orders until the pipe closes, then end what is still guarded."""
    leaders: dict[str, psutil.Process] = {}
    directories: set[str] = set()
    for line in sys.stdin:
        order, _, subject = line.rstrip("\n").partition(" ")
        match order:
            case "+process":
                with suppress(psutil.NoSuchProcess):
                    leaders[subject] = psutil.Process(int(subject))
            case "-process":
                leaders.pop(subject, None)
            case "+directory":
                directories.add(subject)
            case "-directory":
                directories.discard(subject)
    for leader in leaders.values():
        families.kill(leader)
    for directory in directories:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    watch()
