"""The built wheel, installed into an empty environment, is a working product: SQL, defaults and all."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def call(*command: str | Path, cwd: Path, **environment: str) -> str:
    bare = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    ended = subprocess.run(
        command, cwd=cwd, env={**bare, **environment}, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    return ended.stdout


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_wheel_alone_runs_the_demo(tmp_path: Path) -> None:
    call(sys.executable, "-m", "build", "-q", "--wheel", "--outdir", tmp_path, ROOT, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    # What git does not keep, and what is no Python: without these the console would be half a one.
    for name in ("assets/htmx.min.js", "assets/console.css", "templates/layout.html", "words/zh-Hant/shared.toml"):
        assert f"tidings/console/{name}" in inside
    call(sys.executable, "-m", "venv", tmp_path / "empty", cwd=tmp_path)
    call(tmp_path / "empty/bin/pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=tmp_path)
    said = call(tmp_path / "empty/bin/tidings", "demo", cwd=tmp_path)
    assert "It adds up." in said
