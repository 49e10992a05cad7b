"""File locks that end with their process. A lock is let go by closing it, never by LOCK_UN: the copy that was
passed on to a child must stay locked when ours is closed."""

import fcntl
import os
import time
from pathlib import Path
from typing import Self

from tidings.db.embedded.durable import open_own
from tidings.errors import EmbeddedServerFailed

SHARED, EXCLUSIVE = fcntl.LOCK_SH, fcntl.LOCK_EX
PAUSE = 0.03


class Lock:
    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def release(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def try_take(path: Path, mode: int) -> Lock | None:
    lock = Lock(open_own(path, os.O_RDWR))
    try:
        fcntl.flock(lock.descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.release()
        return None
    except BaseException:
        lock.release()
        raise
    return lock


def take(path: Path, mode: int, *, within: float) -> Lock:
    deadline = time.monotonic() + within
    while (lock := try_take(path, mode)) is None:
        if time.monotonic() > deadline:
            raise EmbeddedServerFailed(
                f"Another process has kept {path} locked for more than {within:.0f} seconds.",
                f"Look for it with `fuser {path}` (or `lsof {path}`); end it if it hangs, then try again.",
            )
        time.sleep(PAUSE)
    return lock
