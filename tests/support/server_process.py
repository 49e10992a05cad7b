"""The life of a private throwaway database server; the engines say how theirs is installed and run."""

import os
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import psutil

from tests.support import families, unprivileged, watchdog
from tests.support.ports import ReservedPort
from tests.support.waiting import wait_until

PASSWORD = "test-only"
ENVIRONMENT = {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class Availability:
    """True when a server can be started here; otherwise the reason why not."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


class ServerProcess(ABC):
    """One server with its own data directory and port; both stay the same over `kill()` and `restart()`.

    Committed data survives `kill()`; with `durable=True` it would survive a power cut, as in production.
    """

    engine: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]

    def __init__(self, durable: bool = False) -> None:
        self.durable = durable
        self._directory: Path | None = None
        self._port: ReservedPort | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @abstractmethod
    def available(cls) -> Availability:
        """Whether this machine can run the server."""

    @property
    @abstractmethod
    def admin_url(self) -> str:
        """The URL of the server's own administrator."""

    @abstractmethod
    def _install(self) -> None:
        """Fill the empty data directory."""

    @abstractmethod
    def _command(self) -> list[str]:
        """The command that runs the server in the foreground."""

    @abstractmethod
    def _is_ready(self) -> bool:
        """Whether the server accepts sessions."""

    @property
    def port(self) -> int:
        assert self._port is not None, "the server was not started"
        return self._port.number

    @property
    def kind(self) -> str:
        """What the tests call it: its engine, or the way to it."""
        return self.engine

    @property
    def roles_port(self) -> int:
        """Where roles come to it."""
        return self.port

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    @property
    def directory(self) -> Path:
        assert self._directory is not None, "the server was not started"
        return self._directory

    @property
    def has_data(self) -> bool:
        return self._directory is not None

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> str:
        """All that the server and its installer wrote so far."""
        path = self.directory / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> Self:
        """Start it, with a fresh data directory the first time, and return when it accepts sessions."""
        assert self._process is None, "the server runs already"
        if not self.has_data:
            self._settle()
        self._process = self._launch(self._command())
        watchdog.guard_process(self._process.pid)
        try:
            wait_until(self._has_started, timeout=60, what=f"{self.engine} to accept sessions")
        except BaseException as error:
            error.add_note(self.log)
            self.stop(remove=True)
            raise
        return self

    def stop(self, remove: bool = False) -> None:
        """Shut down cleanly if it runs, and remove the data directory if asked."""
        if self._process is not None:
            self._process.send_signal(self.stop_signal)
            try:
                self._process.wait(30)
            finally:
                self.kill()
        if remove and self.has_data:
            self._leave()

    def kill(self) -> None:
        """SIGKILL the server and its children at once."""
        if self._process is None:
            return
        if self._process.poll() is None:
            families.kill(psutil.Process(self._process.pid))
        self._process.wait()
        watchdog.release_process(self._process.pid)
        self._process = None

    def restart(self) -> Self:
        """Start again on the same data and port, after `kill()`, `stop()`, or out of running."""
        self.stop()
        return self.start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop(remove=True)

    def _settle(self) -> None:
        self._port = ReservedPort()
        self._directory = unprivileged.fresh_directory(f"tidings-{self.engine}-", in_memory=not self.durable)
        watchdog.guard_directory(self._directory)
        try:
            self._install()
        except BaseException as error:
            error.add_note(self.log)
            self._leave()
            raise

    def _leave(self) -> None:
        assert self._port is not None
        shutil.rmtree(self.directory)
        watchdog.release_directory(self.directory)
        self._port.release()
        self._directory = self._port = None

    def _write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o644)  # whatever the umask, for the user that runs the server
        return path

    def _launch(self, command: list[str]) -> subprocess.Popen[bytes]:
        with open(self.directory / "server.log", "ab") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                # A starting MariaDB sweeps its temporary directory, so it must not be one that others use.
                env=ENVIRONMENT | {"TMPDIR": str(self.directory)},
                start_new_session=True,
                **unprivileged.identity(),
            )

    def _run_installer(self, command: list[str]) -> None:
        process = self._launch(command)
        watchdog.guard_process(process.pid)
        code = process.wait(120)
        watchdog.release_process(process.pid)
        if code:
            raise RuntimeError(f"{command[0]} ended with code {code}")

    def _has_started(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"{self.engine} ended with code {self._process.returncode} while it started")
        return self._is_ready()
