"""Fetches the peers, of the versions that were measured, into a folder that is not part of the project."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

# Beside the packages that the project itself needs, and ignored as those are.
FOLDER = Path(sys.prefix) / "peers"
PYTHON_PACKAGES = ("procrastinate==3.10.0", "pgqueuer==1.6.0", "asyncpg", "psycopg[binary,pool]", "uvloop")
NODE_PACKAGES = ("graphile-worker@0.18.0",)
_INSTALLED = "installed"


def python() -> Path:
    """A Python of its own, in which they can't change our packages."""
    folder = FOLDER / "python"
    if not _is_installed(folder, PYTHON_PACKAGES):
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip"]
        subprocess.run([*pip, "install", "-q", *PYTHON_PACKAGES], check=True)
        _mark(folder, PYTHON_PACKAGES)
    return folder / "bin" / "python"


def node_folder() -> Path | None:
    """Where npm has put them; None where there is no Node."""
    if not (shutil.which("node") and shutil.which("npm")):
        return None
    folder = FOLDER / "node"
    if not _is_installed(folder, NODE_PACKAGES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)]
        subprocess.run([*npm, *NODE_PACKAGES], check=True)
        _mark(folder, NODE_PACKAGES)
    return folder


def _is_installed(folder: Path, packages: tuple[str, ...]) -> bool:
    marker = folder / _INSTALLED
    return marker.exists() and marker.read_text() == "\n".join(packages)


def _mark(folder: Path, packages: tuple[str, ...]) -> None:
    (folder / _INSTALLED).write_text("\n".join(packages))
