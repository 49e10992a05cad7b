"""Files that are whole or absent, also after a power cut, and that only their directory's owner can read."""

import os
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """For one writer at a time, which the caller sees to."""
    unfinished = path.with_name(f"{path.name}.new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        give_to_owner_of(path.parent, descriptor)
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


def give_to_owner_of(directory: Path, descriptor: int) -> None:
    """What root writes into another user's directory must not lock that user out."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
