"""Runs a trial that needs a network or mounts of its own, as a process that has them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.chaos.attendants import ROOT
from tests.support import families, watchdog
from tests.support.processes import INHERITED


def why_not() -> str:
    """Why it can't be done here, if so."""
    if sys.platform != "linux":
        return "network namespaces and mounts of its own are made on Linux only"
    if os.geteuid():
        return "only root can make hosts (network namespaces) and small disks (mounts)"
    missing = [name for name in ("unshare", "nsenter", "ip", "mount") if not shutil.which(name)]
    return f"not installed: {', '.join(missing)} (Debian: util-linux, iproute2)" if missing else ""


def run_apart(trial: str, kind: str, size: str, folder: Path, patience: float) -> str:
    """What it has told; fails with all of it if something was wrong."""
    if reason := why_not():
        pytest.skip(reason)
    bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
    command = [sys.executable, "-m", "tests.machines", trial, "--engine", kind, "--size", size, "--keep", str(folder)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**bare, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    watchdog.guard_process(process.pid)
    leader = psutil.Process(process.pid)
    try:
        told, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        families.kill(leader)
        told, _ = process.communicate()
        raise AssertionError(f"not at its end after {patience:g} s:\n{told}") from None
    finally:
        families.kill(leader)
        watchdog.release_process(process.pid)
    assert process.returncode == 0, told
    return told
