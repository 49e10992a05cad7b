"""Files that are whole or absent, also after a power cut, and that only their directory's owner can read."""

import os
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """For one writer at a time, which the caller sees to."""
    unfinished = path.with_name(f"{path.name}.new")
    descriptor = open_own(unfinished, os.O_WRONLY | os.O_TRUNC)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.replace(unfinished, path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_own(path: Path, flags: int) -> int:
    """Makes it if need be, for the directory's owner. So root in another user's directory neither locks that user
    out, nor can be led by a link to a file of somebody else."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    return descriptor
