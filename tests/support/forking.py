"""Starts `python -m …` without the second that its imports take: forked from a process that has made them already.

One such process for each test worker. What it forks is a process like any other: with a pid, a session, an environment,
a folder and pipes of its own, and it ends as Python ends. Only what is imported is there before, and nothing of the
command line itself, whose output is made for the environment in which it is loaded.
"""

import atexit
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SECONDS_TO_FORK = 60.0
_LONGEST_ORDER = 256 * 1024
_FOREIGN = ("typer", "rich.console", "rich.table", "rich.progress", "asyncpg", "asyncmy", "uvloop")
_LEFT_OUT = ("tidings.cli.", "tidings.__main__")


def can_be_forked(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """A module of this Python, in an environment that says nothing about Python itself."""
    return list(argv[:2]) == [sys.executable, "-m"] and not any(name.startswith("PYTHON") for name in env)


class Forked:
    """As `subprocess.Popen`, as far as tests use it. `stdout` and `stderr` are file descriptors that it writes to."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path | None, stdout: int, stderr: int) -> None:
        self._told, telling = os.pipe()
        self._lines = b""
        self._code: int | None = None
        order = {"argv": list(argv[2:]), "env": dict(env), "cwd": str(cwd or Path.cwd())}
        try:
            socket.send_fds(_forker(), [json.dumps(order).encode()], [stdout, stderr, telling])
        finally:
            os.close(telling)
        pid = self._line(SECONDS_TO_FORK)
        assert pid, "the process that forks others is gone"
        self.pid = int(pid)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for the signal that ended it."""
        if self._code is None:
            # Nothing at all: whoever would have told it is gone, and took it along.
            self._code = int(self._line(timeout) or -signal.SIGKILL)
            os.close(self._told)
        return self._code

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def _line(self, timeout: float | None) -> str:
        """What is told next; '' if nothing will be."""
        while b"\n" not in self._lines:
            if not _is_readable(self._told, timeout):
                raise subprocess.TimeoutExpired("forked", timeout or 0)
            more = os.read(self._told, 100)
            if not more:
                return ""
            self._lines += more
        line, _, self._lines = self._lines.partition(b"\n")
        return line.decode()


def _is_readable(file: int, timeout: float | None) -> bool:
    # Not select(), which knows no more than a thousand files.
    waiting = select.poll()
    waiting.register(file, select.POLLIN)
    return bool(waiting.poll(None if timeout is None else timeout * 1000))


@cache
def _forker() -> socket.socket:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.forking", str(there.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        pass_fds=[there.fileno()],
        start_new_session=True,
    )
    there.close()

    def end() -> None:
        here.close()
        process.wait()

    atexit.register(end)
    return here


# --- the process that forks others -----------------------------------------------------------------------------------


def _load() -> None:
    import tidings

    for name in _FOREIGN:
        import_module(name)
    for module in pkgutil.walk_packages(tidings.__path__, "tidings."):
        if not module.name.startswith(_LEFT_OUT):
            import_module(module.name)
    # What is never looked at when a process ends need not be copied then: that takes four times as long as all else.
    gc.collect()
    gc.freeze()


def _serve(orders: socket.socket) -> dict[str, Any] | None:
    """Until nobody can order any more: None. In a process that was forked: its order."""
    children: dict[int, int] = {}
    woken, waker = os.pipe2(os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    awaited: list[socket.socket | int] = [orders, woken]
    while True:
        ready = select.select(awaited, [], [])[0]
        if woken in ready:
            os.read(woken, 1000)
            _tell_ends(children)
        if orders in ready:
            text, files, _, _ = socket.recv_fds(orders, _LONGEST_ORDER, 3)
            if not text:
                return None
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for file in (orders.fileno(), woken, waker, *children.values()):
                    os.close(file)
                return {**json.loads(text), "files": list(files)}
            children[pid] = files[2]
            with suppress(BrokenPipeError):
                os.write(files[2], f"{pid}\n".encode())
            for file in files[:2]:
                os.close(file)


def _tell_ends(children: dict[int, int]) -> None:
    for pid, file in [*children.items()]:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            del children[pid]
            # Perhaps nobody wants to know any more.
            with suppress(BrokenPipeError):
                os.write(file, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(file)


def _become(order: dict[str, Any]) -> None:
    """What a new Python would be when it begins with this module."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stdout, stderr, told = order["files"]
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    for file in {stdout, stderr, told} - {1, 2}:
        os.close(file)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    sys.path[0] = order["cwd"]
    sys.argv = order["argv"]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _load()
    given = _serve(socket.socket(fileno=int(sys.argv[1])))
    if given is not None:
        _become(given)
        runpy.run_module(given["argv"][0], run_name="__main__", alter_sys=True)
