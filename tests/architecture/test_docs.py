"""The generated pages say what the code says; decisions are numbered and reachable."""

import re
from pathlib import Path

from tidings.reference import stale_pages

ROOT = Path(__file__).parents[2]


def test_the_generated_pages_are_in_step_with_the_code() -> None:
    assert stale_pages(ROOT / "docs" / "reference") == [], "run `make docs`"


def test_every_link_of_our_documents_leads_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    mentioned = set(re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text("utf-8")))
    assert mentioned <= targets
