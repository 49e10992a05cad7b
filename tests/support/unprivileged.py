"""Database servers refuse to run as root: root starts them as nobody, anybody else as oneself."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

from tidings.db.embedded.account import Switch, account_for

_MEMORY = ("/dev/shm",)
# More than all servers of a run fill together; containers often have 64 MB there.
_ROOM = 8 * 1024**3


def identity() -> Switch:
    """As whom servers run, as arguments of `subprocess`; empty where that is ourselves."""
    return account_for().switch()


def fresh_directory(prefix: str, *, in_memory: bool = False) -> Path:
    """A new private directory that belongs to the identity and that it can enter; in memory where there is room."""
    candidates = [*(_MEMORY if in_memory and _has_room(_MEMORY[0]) else ()), tempfile.gettempdir(), "/tmp", "/var/tmp"]
    parent = next(path for path in candidates if can_enter(Path(path)))
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    if run_as := identity():
        os.chown(directory, run_as["user"], run_as["group"])
    return directory


def _has_room(folder: str) -> bool:
    return Path(folder).is_dir() and shutil.disk_usage(folder).free > _ROOM


def can_enter(path: Path) -> bool:
    """Whether the identity may pass through all folders down to this one."""
    if not identity():
        return os.access(path, os.X_OK)
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in [path.resolve(), *path.resolve().parents])
