"""Sees that a keeper is there and the server accepts connections. Called under the switch and with a hold."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tidings.db.embedded.cluster import prepare
from tidings.db.embedded.locks import EXCLUSIVE, Lock, try_take
from tidings.db.embedded.record import Record
from tidings.db.embedded.server_process import PidFile, find_running
from tidings.db.embedded.state import KEEPER, LOG, log_tail, open_log
from tidings.errors import EmbeddedServerFailed

START_DEADLINE = 120.0
KEEPER_DEADLINE = 30.0
PAUSE = 0.03


def bring_up(data_dir: Path, say: Callable[[str], None]) -> None:
    deadline = time.monotonic() + START_DEADLINE
    started_keeper = False
    while True:
        if (lock := try_take(data_dir / KEEPER, EXCLUSIVE)) is not None:
            with lock:
                if started_keeper:
                    raise _not_started(data_dir, "ended instead of accepting connections")
                _start_keeper(data_dir, lock, say)
                started_keeper, deadline = True, time.monotonic() + START_DEADLINE
        if is_ready(data_dir):
            return
        if time.monotonic() > deadline:
            raise _not_started(data_dir, f"did not accept connections within {START_DEADLINE:.0f} seconds")
        time.sleep(PAUSE)


def _start_keeper(data_dir: Path, lock: Lock, say: Callable[[str], None]) -> None:
    record = prepare(data_dir, say)
    say(f"starting PostgreSQL {record.major} in {data_dir}")
    command = [sys.executable, "-P", "-m", "tidings.db.embedded.keeper", str(data_dir), str(lock.descriptor)]
    try:
        with open_log(data_dir) as log:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(lock.descriptor,),
                start_new_session=True,
                timeout=KEEPER_DEADLINE,
                check=True,
            )
    except subprocess.SubprocessError as error:
        raise _not_started(data_dir, f"has no keeper ({error})") from error


def is_ready(data_dir: Path) -> bool:
    server = find_server(data_dir)
    return server is not None and server.ready


def find_server(data_dir: Path) -> PidFile | None:
    """The living server, if it is where the record says."""
    if (record := Record.read(data_dir)) is None:
        return None
    running = find_running(record.cluster_in(data_dir))
    return running if running and running.port == record.port else None


def _not_started(data_dir: Path, what: str) -> EmbeddedServerFailed:
    return EmbeddedServerFailed(
        f"The embedded PostgreSQL in {data_dir} {what}. The end of its log:\n{log_tail(data_dir)}",
        f"The whole log is in {data_dir / LOG}. Put right what it says, then try again.",
    )
