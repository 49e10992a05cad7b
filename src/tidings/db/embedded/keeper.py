"""The keeper's program: starts PostgreSQL, again when it dies, and stops it when nobody holds it any more."""

import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

from tidings.db.embedded import server_process
from tidings.db.embedded.locks import EXCLUSIVE, Lock, try_take
from tidings.db.embedded.record import Record
from tidings.db.embedded.server_process import Postmaster
from tidings.db.embedded.state import HOLDERS, KEEPER, SWITCH, open_log

PAUSE = 0.25
PATIENCE = 5.0  # how long a server that dies again and again is started again
PORTS = range(15432, 30000)  # below those of outgoing connections, so that it is still free next time


class Keeper:
    def __init__(self, data_dir: Path, lock: Lock) -> None:
        self.data_dir = data_dir
        self.lock = lock
        self.server = self._adopt()
        self.started = self.trouble = 0.0

    def keep(self) -> None:
        while not self._dismissed():
            if self.server is None or not self.server.lives():
                self._start()
            time.sleep(PAUSE)

    def _dismissed(self) -> bool:
        """Under both locks nobody holds and nobody can arrive: then, and only then, the server is stopped."""
        if not self._still_in_place():
            return self._leave()
        if (switch := try_take(self.data_dir / SWITCH, EXCLUSIVE)) is None:
            return False
        with switch:
            if (holders := try_take(self.data_dir / HOLDERS, EXCLUSIVE)) is None:
                return False
            with holders:
                return self._leave()

    def _leave(self) -> bool:
        if self.server is not None:
            self.server.stop()
        self.lock.release()  # before the switch, so that the next one in finds nobody
        return True

    def _still_in_place(self) -> bool:
        """Not when the data directory was deleted. There may be another of its name, with its own keeper."""
        try:
            return os.path.samestat(os.fstat(self.lock.descriptor), os.stat(self.data_dir / KEEPER))
        except FileNotFoundError:
            return False

    def _adopt(self) -> Postmaster | None:
        record = self._record()
        cluster = record.cluster_in(self.data_dir)
        if (running := server_process.find_running(cluster)) is None:
            return None
        record.at_port(running.port).write(self.data_dir)
        return Postmaster(cluster, running.pid)

    def _start(self) -> None:
        now = time.monotonic()
        if self.server is None or now - self.started > PATIENCE:
            self.trouble = now
        elif now - self.trouble > PATIENCE:
            sys.exit(f"keeper: PostgreSQL kept ending for {PATIENCE:.0f} seconds, giving up")
        self.started = now
        record = self._record()
        port = _free_port(record.port)
        record.at_port(port).write(self.data_dir)
        cluster, binaries = record.cluster_in(self.data_dir), Path(record.binaries)
        with open_log(self.data_dir) as log:
            self.server = server_process.start(cluster, binaries, port, log)

    def _record(self) -> Record:
        if (record := Record.read(self.data_dir)) is None:
            sys.exit(f"keeper: {self.data_dir} has no server.json, so there is nothing to keep")
        return record


def _free_port(preferred: int | None) -> int:
    candidates = [preferred] if preferred else []
    candidates += random.sample(PORTS, 200)
    # Port 0 is refused by PostgreSQL, which says so in the log.
    return next((port for port in candidates if _is_free(port)), 0)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def main() -> None:
    data_dir, lock = Path(sys.argv[1]), Lock(int(sys.argv[2]))
    if os.fork():
        os._exit(0)  # tells the starter that we are up; and nobody has to reap us
    os.chdir("/")
    for order in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A service manager sends these to everybody at once; the holders need the database to finish.
        signal.signal(order, lambda *_: None)
    Keeper(data_dir, lock).keep()


if __name__ == "__main__":
    main()
