"""Loads the product once and forks its processes, each with a session, an environment and a log of its own.

A fork is quick where a start takes a second: a run of a minute can kill dozens. `python -m tests.chaos.nursery` reads
lines of JSON, `{"name", "argv", "env", "log", "cwd"}`, answers `started NAME PID`, and tells `ended NAME PID CODE`.
The environment may say on which host a process lives.
"""

import ctypes
import json
import os
import random
import selectors
import signal
import sys
import traceback
from importlib import import_module
from typing import Any

from tests.chaos.hurrying import hurry
from tidings.cli.main import main as tidings_main

# What the command line loads only when it is needed, loaded once for all.
for module in ("tidings.cli.running", "tidings.db.postgresql", "tidings.db.mysql", "structlog", "uvloop"):
    import_module(module)

_DIE_WITH_PARENT = 1
_NETWORK = 0x40000000
# A network namespace, as a file in /proc.
HOST = "TIDINGS_TEST_HOST"


class Nursery:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._read = bytearray()
        self._wake, self._told = os.pipe()
        os.set_blocking(self._told, False)
        os.set_blocking(self._wake, False)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._told)
        with selectors.DefaultSelector() as ready:
            ready.register(0, selectors.EVENT_READ)
            ready.register(self._wake, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.fd == self._wake:
                        os.read(self._wake, 1000)
                        self._reap()
                    elif not self._obey():
                        return

    def _obey(self) -> bool:
        data = os.read(0, 1 << 16)
        self._read += data
        *lines, rest = self._read.split(b"\n")
        self._read = bytearray(rest)
        for line in lines:
            self._start(json.loads(line))
        return bool(data)

    def _start(self, order: dict[str, Any]) -> None:
        pid = os.fork()
        if pid == 0:
            _become(order)
        self._names[pid] = order["name"]
        _say(f"started {order['name']} {pid}")

    def _reap(self) -> None:
        while self._names:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            _say(f"ended {self._names.pop(pid)} {pid} {os.waitstatus_to_exitcode(status)}")


def _become(order: dict[str, Any]) -> None:
    code = 1
    try:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if HOST in order["env"]:
            _move_to(order["env"][HOST])
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.environ.clear()
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        sys.path.insert(0, order["cwd"])
        sys.argv = ["tidings", *order["argv"]]
        # Otherwise all would draw the same lots.
        random.seed()
        hurry()
        tidings_main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _move_to(host: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    with open(host) as namespace:
        if libc.setns(namespace.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), f"can't move to {host}")


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


if __name__ == "__main__":
    Nursery().run()
