"""The generated pages say what the code says; links lead somewhere; decisions are numbered and listed."""

import re
from pathlib import Path

import pytest

from tests.architecture.documents import broken, documents, links
from tests.architecture.named_tests import existing_tests
from tidings.reference import stale_pages

ROOT = Path(__file__).parents[2]


def test_the_generated_pages_are_in_step_with_the_code() -> None:
    assert stale_pages(ROOT / "docs" / "reference") == [], "run `make docs`"


def test_every_link_of_our_documents_leads_somewhere() -> None:
    found = [(document, link) for document in documents() for link in links(document)]
    assert len(found) > 200
    wrong = [
        f"{document.relative_to(ROOT)}: {link} {says}" for document, link in found if (says := broken(document, link))
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("docs/promises.md", ""),
        ("docs/promises.md#what-is-not-promised", ""),
        ("https://example.com/x", ""),
        ("docs/nowhere.md", "leads nowhere"),
        ("docs/promises.md#nothing", "has an anchor that is no heading there"),
        ("../elsewhere.md", "leads nowhere"),
        ("..", "leads out of the repository"),
    ],
)
def test_a_broken_link_is_found(link: str, says: str) -> None:
    assert broken(ROOT / "README.md", link) == says


def test_every_file_and_every_test_that_a_document_names_exists() -> None:
    paths = re.compile(r"`((?:bench|examples|scripts|src|tests)/[^`\s]+)`")
    named = {name for document in documents() for name in paths.findall(document.read_text("utf-8"))}
    tests = {name for name in named if "::" in name}
    assert tests
    assert sorted(tests - existing_tests()) == []
    assert sorted(name for name in named - tests if not any(ROOT.glob(name))) == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        document = todo.pop()
        reached.add(document)
        leads_to = {(document.parent / link.partition("#")[0]).resolve() for link in links(document) if ":" not in link}
        todo += [one for one in leads_to if one.suffix == ".md" and one.is_file() and one not in reached]
    assert {str(one.relative_to(ROOT)) for one in set(documents()) - reached} == set()


def test_the_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(path.name[:4]) for path in (ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_decision_and_every_ruling_stands_in_the_list() -> None:
    folder = ROOT / "docs" / "decisions"
    page = (folder / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| \[\d+\]\((\d{4}[^)]+)\)", page, re.MULTILINE)
    assert listed == sorted(path.name for path in folder.glob("[0-9]*.md"))
    rulings = re.findall(r"^\| (\d+) \| .* \| \[\d+\]\((.+)\) \|$", page, re.MULTILINE)
    assert [int(number) for number, _ in rulings] == list(range(1, 20))
    for number, file in rulings:
        text = (folder / file).read_text("utf-8")
        assert re.search(rf"\bruling {number}\b", text), f"{file} does not name ruling {number}"


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    mentioned = set(re.findall(r"`?make ([a-z-]+)", (ROOT / "README.md").read_text("utf-8")))
    assert mentioned
    assert mentioned <= targets
