"""Each line of docs/promises.md names tests that exist: what nobody tries is no promise."""

import re

import pytest

from tests.architecture.named_tests import ROOT, existing_tests

PAGE = ROOT / "docs" / "promises.md"


def promises(page: str) -> list[tuple[str, list[str]]]:
    """What each row says, and what it names."""
    rows = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith("| ") and "| tests |" not in line]
    return [(row[0].strip(), re.findall(r"`(tests/[^`]+)`", row[-1])) for row in rows]


def unkept(page: str, existing: frozenset[str]) -> list[str]:
    found = promises(page)
    return [
        *(f"nobody tries: {says}" for says, tests in found if not tests),
        *(f"there is no {test}" for _, tests in found for test in tests if test not in existing),
    ]


def test_every_promise_is_kept_by_tests_that_exist() -> None:
    page = PAGE.read_text("utf-8")
    assert len(promises(page)) > 20
    assert unkept(page, existing_tests()) == []


def test_the_page_is_one_page() -> None:
    assert len(PAGE.read_text("utf-8").splitlines()) < 90


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("| it is so | `tests/a.py::test_a` |", []),
        ("| it is so | |", ["nobody tries: it is so"]),
        ("| it is so | `tests/a.py::test_b` |", ["there is no tests/a.py::test_b"]),
    ],
)
def test_a_promise_without_a_test_is_found(page: str, wrong: list[str]) -> None:
    assert unkept(page, frozenset({"tests/a.py::test_a"})) == wrong
