"""What a release is made of: the built wheel, installed into an empty environment, is a working product."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_sdist_and_wheel_are_whole_and_the_wheel_alone_runs_the_demo() -> None:
    """On this Python; `make release-check` tries all that are at hand."""
    command = [sys.executable, str(ROOT / "scripts" / "release-check"), "--only-this-python"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=480, check=False)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    assert "runs the demo, and it adds up." in ended.stdout


def test_the_extras_are_drivers_that_publishing_is_tried_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    tried = " ".join(project["dependency-groups"]["dev"])
    for name, (package,) in project["project"]["optional-dependencies"].items():
        assert package.startswith(name)
        assert name in tried


def test_every_python_that_is_promised_is_one_that_the_release_check_looks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = [one.rpartition(" ")[2] for one in project["classifiers"] if one.startswith("Programming Language")]
    script = (ROOT / "scripts" / "release-check").read_text("utf-8")
    assert f"SUPPORTED = ({', '.join(f'{chr(34)}{one}{chr(34)}' for one in promised)})" in script
