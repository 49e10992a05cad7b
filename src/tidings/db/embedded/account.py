"""The account that PostgreSQL runs as. It refuses root, so root gives it to the owner of what is there, or to
`nobody`: not to `postgres`, who may own another cluster's files, which our superuser could then read."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from tidings.errors import EmbeddedServerFailed

FALLBACK = "nobody"


class Switch(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


@dataclass(frozen=True)
class Account:
    uid: int
    gid: int

    @property
    def is_ourselves(self) -> bool:
        return self.uid == os.geteuid()

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"

    def switch(self) -> Switch:
        """The arguments with which `subprocess` becomes this account."""
        return {} if self.is_ourselves else {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, *paths: Path) -> None:
        for path in paths:
            if not self.is_ourselves:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def can_enter(self, directory: Path) -> bool:
        """Really tried, as mode bits alone don't tell about ACLs and mounts."""
        attempt = ["/bin/sh", "-c", 'cd "$0"', str(directory)]
        tried = subprocess.run(attempt, cwd="/", stderr=subprocess.DEVNULL, check=False, **self.switch())
        return tried.returncode == 0

    def can_run(self, program: Path) -> bool:
        try:
            tried = subprocess.run([program, "--version"], cwd="/", capture_output=True, check=False, **self.switch())
        except PermissionError:
            return False
        return tried.returncode == 0


def account_for(*places: Path) -> Account:
    """Ourselves; for root, the owner of the first of `places` that is there and not root's, else `nobody`."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid())
    for place in places:
        if place.exists() and (owner := place.stat()).st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
    return _fallback()


def _fallback() -> Account:
    try:
        entry = pwd.getpwnam(FALLBACK)
    except KeyError as error:
        raise EmbeddedServerFailed(
            f"PostgreSQL refuses to run as root, and there is no user `{FALLBACK}` to run it as.",
            "Run Tidings as an ordinary user, or make that user an owner of the data directory.",
        ) from error
    return Account(entry.pw_uid, entry.pw_gid)
