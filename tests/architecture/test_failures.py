"""Each row of the failure catalogue that is taken up stands in docs/reference/failures.md, with the tests that keep it.

The catalogue lies beside the repository; where it is not at hand, its rows are not compared.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

import pytest

from tests.architecture.named_tests import ROOT, cells_of, existing_tests, holds_only_names, names_in

PAGE = ROOT / "docs" / "reference" / "failures.md"
CATALOGUE = ROOT.parent / "shared" / "notes" / "reliability.md"

# Of the letters A, G and H; of H the first five.
TAKEN_UP = re.compile(r"A\d+|G\d+|H[1-5]")
RULED_OTHERWISE = {"A10", "A17", "G1", "H1", "H2"}


@dataclass(frozen=True)
class Row:
    """What goes wrong, what happens then, and what keeps it so; `ruled_by` where the catalogue asks for another end."""

    name: str
    what: str
    here: str
    ruled_by: str
    tests: str


def read_page(text: str) -> list[Row]:
    return [Row(*cells_of(line)) for line in text.splitlines() if re.match(r"\| [A-Z]\d+ \|", line)]


def rows_of(catalogue: str) -> list[str]:
    return [name for name in re.findall(r"^\| ([A-Z]\d+) \|", catalogue, re.MULTILINE) if TAKEN_UP.fullmatch(name)]


def incomplete(rows: Sequence[Row]) -> list[str]:
    """Without words, without tests, or with anything but names of tests in the last column."""
    return [row.name for row in rows if not (row.what and row.here and holds_only_names(row.tests))]


def missing_tests(rows: Sequence[Row], existing: Set[str]) -> list[str]:
    return sorted({name for row in rows for name in names_in(row.tests)} - existing)


def silent_about_rulings(rows: Sequence[Row]) -> list[str]:
    return [row.name for row in rows if bool(row.ruled_by) is not (row.name in RULED_OTHERWISE)]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_page(PAGE.read_text("utf-8"))


def test_every_row_of_the_catalogue_stands_on_the_page_once(rows: list[Row]) -> None:
    if not CATALOGUE.is_file():
        pytest.skip("the catalogue is not beside this clone, in ../shared/notes")
    assert [row.name for row in rows] == rows_of(CATALOGUE.read_text("utf-8"))


def test_every_row_says_what_happens_and_which_tests_keep_it(rows: list[Row]) -> None:
    assert rows
    assert incomplete(rows) == []


def test_every_test_that_the_page_names_exists(rows: list[Row]) -> None:
    assert missing_tests(rows, existing_tests()) == []


def test_where_it_was_decided_otherwise_is_said(rows: list[Row]) -> None:
    assert silent_about_rulings(rows) == []


GOOD = """| # | what goes wrong | what happens | ruled by | tests |
|---|---|---|---|---|
| A1 | this | that | | `tests/a.py::test_a`<br>`tests/b.py::test_b` |
| H1 | this | that | ruling 1 | `tests/a.py::test_a` |
"""
TESTS = {"tests/a.py::test_a", "tests/b.py::test_b"}


def faults(page: str) -> list[list[str]]:
    found = read_page(page)
    return [incomplete(found), missing_tests(found, TESTS), silent_about_rulings(found)]


def test_a_page_without_fault_is_let_through() -> None:
    assert faults(GOOD) == [[], [], []]


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        ("| `tests/a.py::test_a` |", "| |", 0),
        ("| `tests/a.py::test_a` |", "| later |", 0),
        ("| this | that | |", "| this | | |", 0),
        ("tests/b.py::test_b", "tests/b.py::test_bee", 1),
        ("| ruling 1 |", "| |", 2),
        ("| that | |", "| that | ruling 1 |", 2),
    ],
)
def test_a_planted_fault_is_found(good: str, bad: str, fault: int) -> None:
    assert good in GOOD
    assert faults(GOOD.replace(good, bad, 1))[fault] != []


def test_rows_are_those_that_are_taken_up() -> None:
    assert rows_of("| A1 | x |\n| B1 | x |\n| H5 | x |\n| H6 | x |\n| G12 | x |\n") == ["A1", "H5", "G12"]
