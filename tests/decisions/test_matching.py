"""Patterns of routes and subscriptions: what they match, and that no two of the same rank match the same name."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.matching import is_pattern, matches, rank

NAMES = st.text("ab.", max_size=8)
PATTERNS = (NAMES | NAMES.map(lambda name: f"{name}.*") | st.just("*")).filter(is_pattern)
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12)


def expected(pattern: str) -> str:
    """The pattern as a regular expression, written another way than in the code."""
    if pattern == "*":
        return ".*"
    head, tail, _ = pattern.rpartition(".*")
    return re.escape(head) + r"\..+" if tail and pattern.endswith(".*") else re.escape(pattern)


@pytest.mark.parametrize(
    ("pattern", "name", "does"),
    [
        ("order.paid", "order.paid", True),
        ("order.paid", "order.paid.eu", False),
        ("order.paid", "Order.paid", False),
        ("order.*", "order.paid", True),
        ("order.*", "order.paid.eu", True),
        ("order.*", "order", False),
        ("order.*", "order.", False),
        ("order.*", "orders.paid", False),
        ("*", "order", True),
        ("*", "", True),
        ("", "", True),
        ("", "a", False),
    ],
)
def test_what_a_pattern_matches(pattern: str, name: str, does: bool) -> None:
    assert is_pattern(pattern)
    assert matches(pattern, name) is does


@pytest.mark.parametrize("text", ["*.paid", "order.*.eu", "order*", "**", ".*", "*.*", "order.**", "*a"])
def test_what_is_no_pattern(text: str) -> None:
    assert not is_pattern(text)


@given(PATTERNS, NAMES)
def test_matching_is_what_the_regular_expression_says(pattern: str, name: str) -> None:
    assert matches(pattern, name) is bool(re.fullmatch(expected(pattern), name))


@given(VISIBLE, VISIBLE)
def test_any_visible_text_without_a_star_is_a_name_that_matches_itself_alone(text: str, other: str) -> None:
    if "*" not in text:
        assert is_pattern(text)
        assert matches(text, other) is (text == other)


@given(NAMES, st.lists(PATTERNS, unique=True, max_size=40))
def test_two_patterns_that_match_the_same_name_with_equal_rank_are_the_same(name: str, patterns: list[str]) -> None:
    ranks = [rank(pattern) for pattern in patterns if matches(pattern, name)]
    assert len(ranks) == len(set(ranks))


def test_no_two_short_patterns_tie_over_any_short_name() -> None:
    """The same without chance: every name of up to four signs, every pattern made of those."""
    names = ["".join(signs) for length in range(5) for signs in product("ab.", repeat=length)]
    patterns = [text for text in (*names, *(f"{name}.*" for name in names), "*") if is_pattern(text)]
    for name in names:
        ranks = [rank(pattern) for pattern in patterns if matches(pattern, name)]
        assert len(ranks) == len(set(ranks))


def test_exact_comes_before_the_longer_prefix_before_everything() -> None:
    most_first = ["order.paid.eu", "order.paid.*", "order.*", "*"]
    assert all(matches(pattern, "order.paid.eu") for pattern in most_first)
    assert sorted(most_first, key=rank) == most_first[::-1]
