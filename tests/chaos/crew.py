"""The product's processes of a run: several of every role, begun again when they were ended, each death noted."""

import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.chaos.attendants import ROOT, Attendant
from tests.chaos.schedule import names_of
from tests.support.waiting import eventually

MOST_MEMORY = 256 * 2**20
YOUTH = 5.0
# After which a process has loaded and opened what it needs.
GROWN = 30.0
# What makes a process see another time; it must be loaded before the process is.
CLOCK = ("LD_PRELOAD", "FAKETIME", "FAKETIME_DONT_FAKE_MONOTONIC")
Clock = tuple[tuple[str, str], ...]


@dataclass
class Crew:
    """`environments` of the processes by their names; `problems` are endings that nobody caused."""

    folder: Path
    environments: dict[str, dict[str, str]]
    pids: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    kills: int = 0
    most_memory: int = 0
    most_files: int = 0
    most_growth: int = 0
    _doomed: dict[int, str] = field(default_factory=dict)
    _frozen: set[int] = field(default_factory=set)
    _since: dict[int, float] = field(default_factory=dict)
    _grown: dict[int, int] = field(default_factory=dict)
    _nurseries: dict[Clock, Attendant] = field(default_factory=dict)
    _is_over: bool = False

    async def start(self) -> None:
        (self.folder / "logs").mkdir()
        for clock in {*map(_clock_of, self.environments.values())}:
            self._nurseries[clock] = Attendant("tests.chaos.nursery", on_line=self._hear)
            await self._nurseries[clock].start(dict(clock))
        for name in self.environments:
            self._begin(name)
        await eventually(lambda: len(self.pids) == len(self.environments), 60, "all processes to begin")

    def _begin(self, name: str) -> None:
        role = name.rpartition("-")[0]
        order = {
            "name": name,
            "argv": ["run", role],
            "env": self.environments[name],
            "log": str(self.folder / "logs" / f"{name}.log"),
            "cwd": str(ROOT),
        }
        self._nurseries[_clock_of(self.environments[name])].tell(json.dumps(order))

    def _hear(self, words: list[str]) -> None:
        match words:
            case ["started", name, pid]:
                self.pids[name] = int(pid)
                self._since[int(pid)] = time.monotonic()
            case ["ended", name, pid, code]:
                self._note(name, int(pid), int(code))

    def _note(self, name: str, pid: int, code: int) -> None:
        caused = self._doomed.pop(pid, None)
        self._grown.pop(pid, None)
        # Who has just begun has not learnt yet what a signal means.
        is_young = time.monotonic() - self._since.pop(pid, 0.0) < YOUTH and code == -signal.SIGTERM
        if caused is None or (caused == "stop" and code != 0 and not is_young):
            self.problems.append(f"{name} ended with {code}{' after it was told to stop' if caused else ' by itself'}")
        if self.pids.get(name) == pid:
            del self.pids[name]
            if not self._is_over:
                self._begin(name)

    def kill(self, name: str) -> int | None:
        """SIGKILL, with no word to anybody; another one begins. Its pid, if it was there to be killed.

        Not one that is frozen, which is to come back: then another one of the same role.
        """
        named = [name, *names_of(name.rpartition("-")[0])]
        pid = next((self.pids[one] for one in named if one in self.pids and self.pids[one] not in self._frozen), None)
        if pid is not None:
            self._send(pid, signal.SIGKILL)
        return pid

    def kill_process(self, pid: int) -> bool:
        """The same for one that is known by what it does; not one that is doomed or frozen."""
        if pid not in self.pids.values() or pid in self._doomed or pid in self._frozen:
            return False
        self._send(pid, signal.SIGKILL)
        return True

    def kill_caller(self, port: int) -> int | None:
        """Whoever has this port at its end of a connection."""
        for pid in self._pids_of("worker"):
            with suppress(psutil.NoSuchProcess):
                if any(one.laddr.port == port for one in psutil.Process(pid).net_connections("tcp4") if one.laddr):
                    self._send(pid, signal.SIGKILL)
                    return pid
        return None

    def stop(self, name: str) -> int | None:
        """SIGTERM: it ends by itself, and well. Told a second time it would end at once, and otherwise."""
        pid = self.pids.get(name)
        if pid is not None and pid not in self._frozen and pid not in self._doomed:
            self._send(pid, signal.SIGTERM)
            return pid
        return None

    def freeze(self, pid: int) -> bool:
        """SIGSTOP, if it is one of us, nothing else is the matter with it, and somebody is left for its work."""
        if pid not in self.pids.values() or pid in self._doomed or pid in self._frozen:
            return False
        role = next(name.rpartition("-")[0] for name, its in self.pids.items() if its == pid)
        if not {*self._pids_of(role)} - {pid} - self._frozen:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            self._frozen.add(pid)
        return pid in self._frozen

    def thaw(self, pid: int) -> None:
        self._frozen.discard(pid)
        if pid in self.pids.values() or pid in self._doomed:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def relayed(self) -> list[int]:
        """Those that come to the database by way of the relay: every second one of each role."""
        roles = {name.rpartition("-")[0] for name in self.environments}
        return [self.pids[name] for role in roles for name in names_of(role)[1::2] if name in self.pids]

    def measure(self) -> None:
        """Memory and descriptors of everybody, now."""
        for pid in [*self.pids.values()]:
            try:
                process = psutil.Process(pid)
                memory, files = process.memory_info().rss, process.num_fds()
            except psutil.Error:
                continue
            self.most_memory, self.most_files = max(self.most_memory, memory), max(self.most_files, files)
            if time.monotonic() - self._since.get(pid, time.monotonic()) > GROWN:
                self.most_growth = max(self.most_growth, memory - self._grown.setdefault(pid, memory))
            if memory > MOST_MEMORY:
                self.problems.append(f"process {pid} has {memory >> 20} MiB")

    async def end(self, patience: float) -> None:
        """Everybody is told to stop, and does."""
        self._is_over = True
        for pid in {*self.pids.values()} - self._doomed.keys():
            self._send(pid, signal.SIGTERM)
        try:
            await eventually(lambda: not self.pids, patience, "all processes to stop")
        except AssertionError:
            self.problems.append(f"did not stop when told to: {[*self.pids]}")
        await self.abandon()

    async def abandon(self) -> None:
        self._is_over = True
        while self._nurseries:
            await self._nurseries.popitem()[1].stop()

    def _send(self, pid: int, number: signal.Signals) -> None:
        self._doomed[pid] = "stop" if number is signal.SIGTERM else "kill"
        self.kills += number is signal.SIGKILL
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def _pids_of(self, role: str) -> list[int]:
        return [self.pids[name] for name in names_of(role) if name in self.pids]


def _clock_of(environment: dict[str, str]) -> Clock:
    return tuple((name, environment[name]) for name in CLOCK if name in environment)
