"""ARCHITECTURE.md names files that exist and every part there is; the README says the same in both languages."""

import re
from importlib.util import find_spec
from pathlib import Path

from tests.architecture.test_imports import ALLOWED

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidings"
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def named_files(page: str) -> set[str]:
    """Whatever between backticks looks like a path of a file or a folder."""
    return set(re.findall(r"`((?:[\w.]+/)+[\w.]*|[\w]+\.(?:py|toml))`", page))


def test_every_file_that_is_named_exists() -> None:
    files = named_files(PAGE) - {"operations.py", "roles/X"}  # of each role
    assert len(files) > 40
    homes = (SOURCE, ROOT, SOURCE / "api", SOURCE / "settings")
    assert sorted(name for name in files if not any((home / name).exists() for home in homes)) == []


def test_every_part_stands_in_the_picture_and_in_the_table() -> None:
    picture = set(re.findall(r"^  (\w+)(?:\.py|/) ", PAGE, re.MULTILINE))
    assert {part for part in ALLOWED if not part.startswith("__")} - {"errors"} <= picture
    importing = "".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    assert [part for part in ALLOWED if not part.startswith("__") and f"`{part}" not in importing] == []


def test_the_page_is_about_two_pages() -> None:
    assert len(PAGE.split()) < 1900


def test_the_readmes_show_the_same_programs_links_and_figures() -> None:
    """Words differ, and nothing else does."""
    texts = [(ROOT / name).read_text("utf-8") for name in ("README.md", "README.zh-Hant.md")]
    for english, chinese in zip(*map(_skeleton, texts), strict=True):
        assert english
        assert english == chinese


def _skeleton(text: str) -> tuple[list[str], list[str], list[str], int]:
    programs = [re.sub(r" +#.*", "", one) for one in re.findall(r"```(?:python)?\n(.*?)```", text, re.DOTALL)]
    links = [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("README")]
    figures = re.findall(r"\d{1,3},\d{3}|\d+\.\d %|p99|`python -m [^`]+`", text)
    return programs, links, sorted(figures), sum(line.startswith("|") for line in text.splitlines())


def test_the_programs_of_the_readme_are_python() -> None:
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert programs
    for program in programs:
        compile(program, "README.md", "exec")


def test_every_figure_of_the_readme_was_measured_and_written_down() -> None:
    """With the program that measured it; none is only claimed."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## Figures")[2].partition("## Read on")[0]
    rows = [line.split("|")[2:4] for line in text.splitlines() if re.match(r"\| [a-zA-Z]", line)]
    written = [
        path.read_text("utf-8")
        for path in [*(ROOT / "docs" / "decisions").glob("0*.md"), ROOT / "docs" / "performance.md"]
    ]
    assert len(rows) >= 5
    for figure, command in rows:
        (program,) = re.findall(r"`python -m ([\w.]+)[^`]*`", command)
        assert find_spec(program)
        numbers = re.findall(r"\d[\d,.]*\d|\d", re.sub(r"p\d+", "", figure))
        assert numbers
        assert any(all(number in page for number in numbers) for page in written), figure
