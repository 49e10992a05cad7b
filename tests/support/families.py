"""The family of a process: itself, its descendants, and the orphans left in its session.

A leader is started in a session of its own, so that children whose parent was killed are still found.
"""

import os
import signal
from contextlib import suppress

import psutil

from tests.support.waiting import wait_until


def members(leader: psutil.Process) -> list[psutil.Process]:
    """Everybody of the family who still runs, the leader first."""
    if psutil.pid_exists(leader.pid) and not leader.is_running():
        return []  # the pid belongs to a stranger now, which it can only when the whole session is gone
    found = {leader, *_descendants(leader), *_session(leader.pid)}
    return sorted((p for p in found if is_alive(p)), key=lambda p: p != leader)


def kill(leader: psutil.Process) -> None:
    """SIGKILL the whole family and return when nobody runs any more."""
    doomed: set[psutil.Process] = set()

    def nobody_left() -> bool:
        # Remembered: without the leader, members with a session of their own are not found again.
        doomed.update(members(leader))
        # The leader first: it must not end by itself because its children are gone.
        for process in sorted(doomed, key=lambda p: p != leader):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return not any(map(is_alive, doomed))

    wait_until(nobody_left, what=f"the family of process {leader.pid} to be gone")


def send(leader: psutil.Process, number: signal.Signals) -> None:
    """Send a signal to everybody of the family."""
    for process in members(leader):
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs code; a zombie does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _descendants(leader: psutil.Process) -> list[psutil.Process]:
    try:
        return list(leader.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _session(leader_pid: int) -> list[psutil.Process]:
    found = []
    for pid in psutil.pids():
        with suppress(ProcessLookupError, PermissionError, psutil.NoSuchProcess):
            if os.getsid(pid) == leader_pid:
                found.append(psutil.Process(pid))
    return found
