"""Payloads laid out for reading: nothing of what was written is changed but the space between."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.console.payloads import laid_out, shown

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)

UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@UNHURRIED
@given(VALUES)
def test_it_means_the_same_as_before(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=7)):
        assert json.loads(laid_out(text)) == value


@UNHURRIED
@given(st.text(alphabet='{}[],:"\\ \n1a'))
def test_what_is_no_json_or_is_cut_is_shown_too(text: str) -> None:
    assert [sign for sign in laid_out(text) if not sign.isspace()] == [sign for sign in text if not sign.isspace()]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", "{}"),
        ('{"a":[],"b":{}}', '{\n  "a": [],\n  "b": {}\n}'),
        ("[1e400,1.50]", "[\n  1e400,\n  1.50\n]"),
        ('"a\\"{b"', '"a\\"{b"'),
        ("null", "null"),
    ],
)
def test_each_part_has_its_line(text: str, wanted: str) -> None:
    assert laid_out(text) == wanted


def test_no_more_is_shown_than_a_page_can_bear() -> None:
    whole = shown('"é"' * 100, most=10)
    assert whole.is_cut
    assert whole.size == 400
    deep = shown("[" * 60_000)
    assert deep.is_cut
    assert len(deep.text) < 300_000
    assert not shown("{}").is_cut
