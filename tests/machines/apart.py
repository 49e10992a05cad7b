"""Runs a trial that needs a network or mounts of its own, as a process that has them."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT, Process


def why_not() -> str:
    """Why it can't be done here, if so."""
    if sys.platform != "linux":
        return "network namespaces and mounts of its own are made on Linux only"
    if os.geteuid():
        return "only root can make hosts (network namespaces) and small disks (mounts)"
    missing = [name for name in ("unshare", "nsenter", "ip", "mount") if not shutil.which(name)]
    return f"not installed: {', '.join(missing)} (Debian: util-linux, iproute2)" if missing else ""


def run_apart(trial: str, kind: str, size: str, folder: Path, patience: float) -> None:
    """Fails with all that it has told if something was wrong."""
    if reason := why_not():
        pytest.skip(reason)
    command = [sys.executable, "-m", "tests.machines", trial, "--engine", kind, "--size", size, "--keep", str(folder)]
    with Process(command, {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}, ROOT) as process:
        code = process.wait(patience)
    assert code == 0, process.output
