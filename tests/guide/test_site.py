"""The documents as a site: every link and anchor leads somewhere, and no page asks another server for anything."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_is_built_strictly_and_asks_no_other_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    pages = [*(tmp_path / "site").rglob("*.html")]
    assert len(pages) > 50
    for page in pages:
        text = page.read_text("utf-8")
        assert re.findall(r"""<(?:script|link|img|iframe)\b[^>]*(?:src|href)=["'](?:https?:)?//[^"']*""", text) == []
