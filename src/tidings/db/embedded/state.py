"""The files of a data directory that holders and the keeper share, and the log that both write."""

import os
from pathlib import Path
from typing import IO

from tidings.db.embedded.durable import open_own

SWITCH = "switch.lock"
HOLDERS = "holders.lock"
KEEPER = "keeper.lock"
LOG = "server.log"
LOG_LIMIT = 10_000_000


def make_data_dir(data_dir: Path) -> None:
    if not data_dir.exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        # root's PostgreSQL runs as another account, which must be able to pass, but not to look around.
        data_dir.chmod(0o711 if os.geteuid() == 0 else 0o700)


def open_log(data_dir: Path) -> IO[bytes]:
    path = data_dir / LOG
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(data_dir / f"{LOG}.old")
    return open(open_own(path, os.O_WRONLY | os.O_APPEND), "ab")


def log_tail(data_dir: Path, lines: int = 15) -> str:
    try:
        with (data_dir / LOG).open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 8000))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(the log is empty)"
