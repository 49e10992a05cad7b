"""Starts real processes for tests, and ends them and their children when the test ends."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

import psutil

from tests.support import families, watchdog
from tests.support.forking import Forked, can_be_forked
from tests.support.waiting import PATIENCE

INHERITED = ("PATH", "HOME", "LANG")
ROOT = Path(__file__).parents[2]

Start = Callable[["Process"], "Process"]


def tidings(*args: str, **env: str) -> "Process":
    """The product's command line as an operator runs it; not started yet."""
    return Process([sys.executable, "-m", "tidings", *args], env)


def hurried(*args: str, **env: str) -> "Process":
    """The same, with a cleaner that waits for hardly a moment after it connected."""
    made = {"TIDINGS_TEST_CLEANER_PATIENCE": "0.3", **env}
    return Process([sys.executable, "-m", "tests.support.hurried", *args], made, cwd=ROOT)


def processes() -> Iterator[Start]:
    """Fixture function: `start(process)` starts it, and what still runs after the test is ended."""
    with ExitStack() as started:
        yield started.enter_context


class Process:
    """A process with a bare environment: PATH, HOME, LANG and what is given; nothing leaks in from tests.

    Signals other than `terminate()` go to the whole family: the process, its descendants, and its orphans.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self.argv = list(argv)
        self.env = {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(env or {})
        self.cwd = cwd
        self._lines: list[str] = []
        self._news = threading.Condition()
        self._silent = False
        self._popen: subprocess.Popen[str] | Forked | None = None

    def start(self) -> Self:
        """Start it in a session of its own, which dies with the test process."""
        reading, writing = os.pipe()
        self._stdout = os.fdopen(reading, encoding="utf-8", errors="replace")
        try:
            self._popen = self._launched(writing)
        finally:
            os.close(writing)
        watchdog.guard_process(self.pid)
        self._leader = psutil.Process(self.pid)
        self._reader = threading.Thread(target=self._read, name=f"output of {self.pid}", daemon=True)
        self._reader.start()
        return self

    def _launched(self, output: int) -> "subprocess.Popen[str] | Forked":
        if can_be_forked(self.argv, self.env):
            return Forked(self.argv, self.env, self.cwd, output, output)
        return subprocess.Popen(
            self.argv,
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._started.pid

    @property
    def output(self) -> str:
        """Everything written to stdout and stderr so far, in order."""
        return "".join(self._lines)

    @property
    def rss(self) -> int:
        """Resident memory of the whole family in bytes."""
        return sum(member.memory_info().rss for member in families.members(self._leader))

    def is_running(self) -> bool:
        return self._started.poll() is None

    def wait_for_line(self, pattern: str, timeout: float = PATIENCE, nth: int = 1) -> re.Match[str]:
        """Wait until `nth` lines match, counted from the start of the output, and return that match."""
        deadline = time.monotonic() + timeout
        with self._news:
            while True:
                matches = [match for line in self._lines if (match := re.search(pattern, line.rstrip("\n")))]
                if len(matches) >= nth:
                    return matches[nth - 1]
                if self._silent:
                    raise self._failure(f"the process ended without a line that matches {pattern!r}")
                if not self._news.wait(deadline - time.monotonic()):
                    raise self._failure(f"no line matched {pattern!r} within {timeout:g} s")

    def wait(self, timeout: float = 10.0) -> int:
        """Wait for its end and return the exit code, negative for the signal that ended it."""
        try:
            return self._started.wait(timeout)
        except subprocess.TimeoutExpired:
            raise self._failure(f"still running after {timeout:g} s") from None

    def terminate(self) -> None:
        """Ask the process, and not its children, to stop (SIGTERM)."""
        self._started.terminate()

    def kill(self) -> None:
        """SIGKILL the family and return when it is gone; `os.kill(process.pid, …)` spares the children."""
        families.kill(self._leader)
        self._started.wait()

    def freeze(self) -> None:
        """Stop the family where it stands (SIGSTOP): it holds its connections and says nothing."""
        families.send(self._leader, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen family go on (SIGCONT)."""
        families.send(self._leader, signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._reader.join(10)
        self._stdout.close()
        watchdog.release_process(self.pid)

    @property
    def _started(self) -> "subprocess.Popen[str] | Forked":
        assert self._popen is not None, f"not started: {self.argv}"
        return self._popen

    def _read(self) -> None:
        for line in self._stdout:
            with self._news:
                self._lines.append(line)
                self._news.notify_all()
        with self._news:
            self._silent = True
            self._news.notify_all()

    def _failure(self, what: str) -> AssertionError:
        return AssertionError(f"{what}: {' '.join(self.argv)}\n--- output so far ---\n{self.output}")
