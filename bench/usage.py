"""Processor time by process, from Linux's own account of each process and of all that came of it."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

_TICK = os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat, after the name: user and system time, of the process and of children that have ended.
_TIMES = slice(11, 15)
MICROSECONDS = 1e6
MEGABYTE = 1_000_000


def cpu_seconds(pid: int) -> float:
    """Of this process, of its descendants, and of those of them that have ended."""
    with suppress(psutil.NoSuchProcess):
        family = [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
        return sum(map(_seconds, family))
    return 0.0


def _seconds(pid: int) -> float:
    with suppress(FileNotFoundError, ProcessLookupError):
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, after_name[_TIMES])) / _TICK
    return 0.0


def peak_memory(pid: int) -> int:
    """The most bytes that it ever had in memory, in itself; its children count for themselves."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


class Usage:
    """Of processes with names, from the moment at which it is made."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = dict(pids)
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def seconds(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) - self._before[name] for name, pid in self._pids.items()}

    def microseconds_each(self, count: int) -> dict[str, float]:
        return {name: round(one / max(1, count) * MICROSECONDS, 1) for name, one in self.seconds().items()}
