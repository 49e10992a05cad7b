"""Files that are whole or absent, also after a power cut, and that only their directory's owner can read."""

import os
import tempfile
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=f"{path.name}.new-", dir=path.parent)  # is made 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            give_to_owner_of(path.parent, descriptor)
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
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
