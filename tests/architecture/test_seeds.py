"""Each sentence of the seeds that asks for something stands in docs/reference/seeds.md, with the tests that keep it.

The seeds lie beside the repository; where they are not at hand, what quotes them is not compared.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

import pytest

from tests.architecture.named_tests import ROOT, cells_of, existing_tests, holds_only_names, names_in

PAGE = ROOT / "docs" / "reference" / "seeds.md"
SEEDS = ROOT.parent / "shared" / "seeds"

ALL_SEEDS = ("000", "001", "002", "003", "004")
NO_RULE = "What is no rule"

# Words of the seeds about which something else was decided, and where: the line must say so.
RULED_OTHERWISE = {
    "unique (event_id, subscription_id)": "ruling 1",
    "uniq_saga_event_subscription (event_id": "ruling 1",
    "When job was created": "ruling 2",
    "retry limit is exceeded": "ruling 3",
    "base_delay * (2^(attempt_count - 1))": "ruling 4",
    "Clear or leave final_error_code": "ruling 5",
    "SELECT / INSERT / UPDATE": "decision 2",
    "UPDATE jobs": "decision 2",
    ".NET": "ruling 19",
    "event_type 相同": "decision 8",
    "ON DUPLICATE KEY UPDATE": "decision 8",
    "iu_": "ruling 19",
    "event_outbox": "decision 5",
    "SQL function": "decision 7",
    "(last_created_at, last_event_id)": "decision 7",
    "event_ref uuid": "decision 5",
    "FOR UPDATE OF eo SKIP LOCKED": "decision 7",
    "SKIP LOCKED gives": "decision 7",
    "exactly one iu_route_attempt": "decision 8",
    "fn_iu_route_deliver": "ruling 14",
    "feature_not_supported": "ruling 14",
    "dead-letters the event": "ruling 14",
    "No downstream delivery": "ruling 14",
    "dry_run=false macro": "ruling 14",
    "could be skipped": "decision 7",
    "safety-lag": "decision 7",
    "ON UPDATE CURRENT_TIMESTAMP": "decision 5",
    "此時不需要再用樂觀鎖": "ruling 8",
    "直接在下次掃描時處理": "ruling 8",
    "防止重複提交相同任務": "ruling 13",
    "{nextRuntTime}": "ruling 4",
}


@dataclass(frozen=True)
class Line:
    """One row of a table of the page: `how` it is kept, or why it is no rule."""

    seed: str
    quotes: tuple[str, ...]
    how: str
    ruled_otherwise: str = ""
    tests: str = ""
    is_rule: bool = True

    def __str__(self) -> str:
        return f"seed {self.seed}: {' '.join(self.quotes)}"


def read_page(text: str) -> list[Line]:
    section, lines = "", []
    for row in text.splitlines():
        if row.startswith("## "):
            section = row[3:]
        elif row.startswith("| ") and not row.startswith(("| sentence", "| seed |")):
            lines.append(_read_row(section, cells_of(row)))
    return lines


def _read_row(section: str, cells: Sequence[str]) -> Line:
    if section == NO_RULE:
        seed, sentences, why = cells
        return Line(seed, _quotes(sentences), why, is_rule=False)
    sentences, how, ruled_otherwise, tests = cells
    return Line(section.removeprefix("Seed ").split(":")[0], _quotes(sentences), how, ruled_otherwise, tests)


def _quotes(cell: str) -> tuple[str, ...]:
    return tuple(_even(quote) for quote in re.findall("“([^”]*)”", cell.replace(r"\|", "|")))


def _even(text: str) -> str:
    return " ".join(text.split())


def without_tests(lines: Sequence[Line]) -> list[str]:
    """Also those whose last column holds anything but names of tests."""
    return [str(line) for line in lines if line.is_rule and not holds_only_names(line.tests)]


def missing_tests(lines: Sequence[Line], existing: Set[str]) -> list[str]:
    return sorted({test for line in lines for test in names_in(line.tests)} - existing)


def misquoted(lines: Sequence[Line], seed: str, text: str) -> list[str]:
    """What is given as a quotation from this seed, and is none."""
    whole = _even(text)
    return [quote for line in lines if line.seed == seed for quote in line.quotes if quote not in whole]


def unquoted(lines: Sequence[Line], seed: str, text: str) -> list[str]:
    """The lines of a seed that are not made of quotations from end to end."""
    quotes = sorted({quote for line in lines if line.seed == seed for quote in line.quotes}, key=len, reverse=True)
    pieces = "|".join(re.escape(quote) for quote in quotes)
    made_of_quotations = re.compile(rf"(?:\d+\. |• )?(?:{pieces})(?: ?(?:{pieces}))*")
    return [line for line in map(_even, text.splitlines()) if line and not made_of_quotations.fullmatch(line)]


def both_rule_and_not(lines: Sequence[Line]) -> list[str]:
    rules = {(line.seed, quote) for line in lines if line.is_rule for quote in line.quotes}
    others = {(line.seed, quote) for line in lines if not line.is_rule for quote in line.quotes}
    return [quote for _, quote in rules & others]


def silent_about_rulings(lines: Sequence[Line]) -> list[str]:
    return [
        f"{line} – must name {ruling}"
        for line in lines
        for words, ruling in RULED_OTHERWISE.items()
        if line.is_rule
        and any(words in quote for quote in line.quotes)
        and ruling not in line.ruled_otherwise.split(", ")
    ]


def text_of(seed: str) -> str:
    if not SEEDS.is_dir():
        pytest.skip("the seeds are not beside this clone, in ../shared/seeds")
    (path,) = SEEDS.glob(f"{seed}_*.txt")
    return path.read_text("utf-8")


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return read_page(PAGE.read_text("utf-8"))


def test_every_sentence_of_the_seeds_has_a_test(lines: list[Line]) -> None:
    assert {line.seed for line in lines} == set(ALL_SEEDS)
    assert without_tests(lines) == []


def test_every_line_says_how_it_is_kept_or_why_it_is_no_rule(lines: list[Line]) -> None:
    assert [str(line) for line in lines if not line.how or not line.quotes] == []


def test_every_test_that_the_page_names_exists(lines: list[Line]) -> None:
    assert missing_tests(lines, existing_tests()) == []


def test_what_was_decided_otherwise_is_said(lines: list[Line]) -> None:
    assert silent_about_rulings(lines) == []
    unclear = [
        line.ruled_otherwise
        for line in lines
        if not re.fullmatch(r"((ruling |decision )\d+(, |$))*", line.ruled_otherwise)
    ]
    assert unclear == []


def test_nothing_is_both_a_rule_and_none(lines: list[Line]) -> None:
    assert both_rule_and_not(lines) == []


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_every_quotation_stands_in_its_seed(lines: list[Line], seed: str) -> None:
    assert misquoted(lines, seed, text_of(seed)) == []


@pytest.mark.parametrize("seed", ALL_SEEDS)
def test_every_line_of_a_seed_stands_on_the_page(lines: list[Line], seed: str) -> None:
    assert unquoted(lines, seed, text_of(seed)) == []


SEED = """Heading

• Do this. Never do iu_that.
做這個。
"""
GOOD = """## Seed 004: a sample

| sentence | how it is kept | ruled otherwise by | tests |
|---|---|---|---|
| “Do this.” <br> “做這個。” | so | | `tests/a.py::test_a`<br>`tests/b.py::test_b` |
| “Never do iu_that.” | so | ruling 19 | `tests/a.py::test_a` |

## What is no rule

| seed | lines | why |
|---|---|---|
| 004 | “Heading” | heading |
"""


def faults(page: str) -> list[list[str]]:
    found = read_page(page)
    return [
        without_tests(found),
        missing_tests(found, {"tests/a.py::test_a", "tests/b.py::test_b"}),
        silent_about_rulings(found),
        both_rule_and_not(found),
        misquoted(found, "004", SEED),
        unquoted(found, "004", SEED),
    ]


def test_a_page_without_fault_is_let_through() -> None:
    assert faults(GOOD) == [[]] * 6


@pytest.mark.parametrize(
    ("good", "bad", "fault"),
    [
        ("`tests/a.py::test_a`<br>`tests/b.py::test_b`", "", "without_tests"),
        ("`tests/a.py::test_a`<br>`tests/b.py::test_b`", "later", "without_tests"),
        ("`tests/b.py::test_b`", "`tests/b.py::test_bee`", "missing_tests"),
        ("| ruling 19 |", "| |", "silent_about_rulings"),
        ("| ruling 19 |", "| ruling 1 |", "silent_about_rulings"),
        ("“Heading”", "“Heading” “Do this.”", "both_rule_and_not"),
        ("“Do this.”", "“Do that.” “Do this.”", "misquoted"),
        ("“Never do iu_that.”", "“Do iu_that.”", "misquoted"),
        ("“Never do iu_that.”", "“do iu_that.”", "unquoted"),
        ("“做這個。”", "", "unquoted"),
        ("“Heading”", "", "unquoted"),
    ],
)
def test_a_planted_fault_is_found(good: str, bad: str, fault: str) -> None:
    assert good in GOOD
    checks = [without_tests, missing_tests, silent_about_rulings, both_rule_and_not, misquoted, unquoted]
    found = dict(zip((check.__name__ for check in checks), faults(GOOD.replace(good, bad)), strict=True))
    assert found[fault] != []


def test_a_test_is_found_by_its_file_and_name() -> None:
    here = "tests/architecture/test_seeds.py"
    assert f"{here}::test_a_test_is_found_by_its_file_and_name" in existing_tests()
    assert f"{here}::existing_tests" not in existing_tests()
