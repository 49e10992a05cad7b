"""The postmaster: starts it, recognises it among all processes, and stops it. A pid alone proves nothing: it
may belong to another process by now; the command line with our cluster in it does."""

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tidings.db.embedded.account import account_for

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "100",
    "shared_buffers": "128MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "password_encryption": "scram-sha-256",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_checkpoints": "off",
}
PROC = Path("/proc")  # not there on macOS
STOP_DEADLINE = 60.0
IMMEDIATE_STOP_DEADLINE = 15.0


@dataclass
class Postmaster:
    cluster: Path
    pid: int
    child: "subprocess.Popen[bytes] | None" = None  # None when we found it running

    def lives(self) -> bool:
        return self.child.poll() is None if self.child else _is_postmaster_of(self.pid, self.cluster)

    def stop(self) -> None:
        """Fast shutdown; when that takes too long the immediate one, which loses nothing committed either."""
        for order, deadline in ((signal.SIGINT, STOP_DEADLINE), (signal.SIGQUIT, IMMEDIATE_STOP_DEADLINE)):
            if self.lives():
                os.kill(self.pid, order)
                self._wait_until_gone(deadline)

    def _wait_until_gone(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self.lives() and time.monotonic() < deadline:
            time.sleep(0.02)


@dataclass(frozen=True)
class PidFile:
    """What PostgreSQL writes about itself into postmaster.pid."""

    pid: int
    port: int
    ready: bool


def start(cluster: Path, binaries: Path, port: int, log: IO[bytes]) -> Postmaster:
    command = [str(binaries / "postgres"), "-D", str(cluster), "-c", f"port={port}"]
    for name, value in SETTINGS.items():
        command += ["-c", f"{name}={value}"]
    environment = quiet_environment()
    if (stale := _read_pid_file(cluster)) is not None:
        # PostgreSQL would take any living process of that pid for a postmaster. This makes it overlook it,
        # and still refuse while backends of a killed one are left: deleting the file would drop that guard.
        environment["PG_GRANDPARENT_PID"] = str(stale.pid)
    child = subprocess.Popen(
        command,
        cwd="/",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        **account_for(cluster).switch(),
    )
    return Postmaster(cluster, child.pid, child)


def find_running(cluster: Path) -> PidFile | None:
    """The living postmaster of this cluster, whoever started it."""
    written = _read_pid_file(cluster)
    return written if written and _is_postmaster_of(written.pid, cluster) else None


def quiet_environment() -> dict[str, str]:
    """No PG* variables that would change what we ask for, and no secrets for the other account to see."""
    passed_on = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
    return {name: os.environ[name] for name in passed_on if name in os.environ} | {"LC_ALL": "C"}


def _read_pid_file(cluster: Path) -> PidFile | None:
    try:
        lines = (cluster / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        return PidFile(int(lines[0]), int(lines[3]), lines[7:8] != [] and lines[7].strip() == "ready")
    except (FileNotFoundError, IndexError, ValueError):
        return None  # not there, or being written at this moment


def _is_postmaster_of(pid: int, cluster: Path) -> bool:
    return f" -D {cluster} " in _command_line(pid)


def _command_line(pid: int) -> str:
    """Empty when there is no such process, or only its zombie."""
    if PROC.exists():
        try:
            # Unlike /proc/…/cwd it is readable for a root without ptrace rights, as in a container.
            return (PROC / str(pid) / "cmdline").read_text(errors="replace").replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout
