"""What is accepted as an event, and what is refused with a word about what to do."""

import datetime
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.accepting import accept
from tidings.decisions.texts import DEEPEST
from tidings.errors import EventRefused
from tidings.model.event import EventLimits, NewEvent

WIDE = EventLimits(max_payload=1 << 30, max_nesting=1000)


def accepted(
    payload: Any = "{}", event_type: Any = "order.paid", limits: EventLimits | None = None, **more: Any
) -> NewEvent:
    return accept(event_type, payload, **{"correlation_id": "c", "limits": limits or EventLimits(), **more})


def refused(field: str, *given: Any, **more: Any) -> str:
    with pytest.raises(EventRefused) as error:
        accepted(*given, **more)
    assert error.value.field == field
    return str(error.value)


# --- payloads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "null",
        ' { "b" :1,\r\n\t"a": [ ] } \n',
        '{"a":1,"a":2}',
        '"\\u0000"',
        '"\\ud83d\\ude00"',
        '"\\\\ud800"',
        '"\x7f\u2028\ufffe😀"',
        "9" * 5000,
        "1e400",
        "-0.0E+00",
        "[" * 30 + "]" * 30,
        '["' + "[" * 500 + '\\"{"]',
        json.dumps("x" * (256 * 1024 - 2)),
    ],
)
def test_json_text_is_kept_byte_for_byte(text: str) -> None:
    assert accepted(text).payload == text
    assert accepted(text.encode()).payload == text
    assert accepted(bytearray(text.encode())).payload == text
    assert accepted(memoryview(text.encode())).payload == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [None, True, 2.5, "é"]}, '{"b":1,"a":[null,true,2.5,"é"]}'),
        (None, "null"),
        (7, "7"),
        ([], "[]"),
        (("a", 1), '["a",1]'),
        ({1: "x"}, '{"1":"x"}'),
        (["\x00\n"], '["\\u0000\\n"]'),
    ],
)
def test_anything_else_becomes_compact_json_in_the_order_of_its_keys(value: Any, text: str) -> None:
    assert accepted(value).payload == text


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
        max_leaves=20,
    )
)
def test_every_value_of_json_comes_back(value: Any) -> None:
    if isinstance(value, str):
        value = [value]
    assert json.loads(accepted(value).payload) == value
    assert accepted(json.dumps(value)).payload == json.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "hello",
        "{",
        "[1,]",
        "{'a':1}",
        "01",
        "1.",
        "+1",
        "- ",
        '"\\x"',
        '"\n"',
        '"\x00"',
        "1 2",
        "TRUE",
        "/**/1",
    ],
)
def test_text_that_is_no_json_is_refused_with_a_hint(text: str) -> None:
    assert "json.dumps(text)" in refused("payload", text)
    assert "json.dumps(text)" in refused("payload", text.encode())


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity", '{"a":[NaN]}'])
def test_numbers_that_json_does_not_know_are_refused(name: str) -> None:
    assert "is no number of JSON" in refused("payload", name)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, {"a": -math.inf}, {1, 2}, object(), datetime.datetime.now(), {(1,): 2}]
)
def test_values_that_are_no_json_are_refused(value: Any) -> None:
    assert "can't be written as JSON" in refused("payload", value)


@pytest.mark.parametrize("payload", [b'"\xff"', b'"\xed\xa0\x80"', b'"\xc0\x80"', "{}".encode("utf-16")])
def test_bytes_that_are_no_utf8_are_refused(payload: bytes) -> None:
    assert "is no UTF-8 from byte" in refused("payload", payload)


@pytest.mark.parametrize(
    "payload", ['"\ud800"', ["\udfff"], '"\\ud800"', '"\\uDC00\\uD800"', '"\\\\\\ud83d x"', '{"\\udeAD":1}']
)
def test_half_a_surrogate_pair_is_refused_however_it_is_written(payload: Any) -> None:
    assert "half a surrogate pair" in refused("payload", payload)


def test_a_byte_order_mark_is_refused() -> None:
    assert "byte order mark" in refused("payload", "\ufeff{}")
    assert "byte order mark" in refused("payload", b"\xef\xbb\xbf{}")


def test_size_is_counted_in_bytes() -> None:
    limits = EventLimits(max_payload=6)
    assert accepted('"éé"', limits=limits).payload == '"éé"'
    assert "has 7 bytes; at most 6" in refused("payload", '"aaaaa"', limits=limits)
    assert "has 8 bytes; at most 6" in refused("payload", '"ééé"', limits=limits)
    assert "has 7 bytes" in refused("payload", ["aaa"], limits=limits)
    assert f"at most {256 * 1024}" in refused("payload", json.dumps("x" * (256 * 1024 - 1)))


def test_no_setting_lets_more_than_a_mebibyte_through() -> None:
    assert "at most 1048576" in refused("payload", json.dumps("x" * (1 << 20)), limits=WIDE)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_is_limited_by_the_setting_and_by_what_mariadb_keeps(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * levels + "1" + closing * levels

    assert accepted(nested(30))
    assert "deeper than 30 levels" in refused("payload", nested(31))
    assert accepted(nested(DEEPEST), limits=WIDE)
    assert f"deeper than {DEEPEST} levels" in refused("payload", nested(DEEPEST + 1), limits=WIDE)
    assert "too deep" in refused("payload", nested(100_000), limits=WIDE)
    assert accepted("[" + ",".join(["[[1]]"] * 100) + "]", limits=EventLimits(max_nesting=3))


def test_a_python_value_that_is_nested_too_deep_or_in_itself_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    refused("payload", deep, limits=WIDE)
    ring: list[Any] = []
    ring.append(ring)
    refused("payload", ring, limits=WIDE)


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "longest"), [("event_type", 100), ("event_domain", 100), ("event_stream", 100), ("correlation_id", 128)]
)
def test_names_are_visible_ascii_of_a_limited_length(field: str, longest: int) -> None:
    given: dict[str, Any] = {field: "!~" * (longest // 2)}
    assert getattr(accepted(**given), field) == given[field]
    assert f"at most {longest}" in refused(field, **{field: "x" * (longest + 1)})
    for bad in ("a b", " a", "a\n", "é", "a\x00", "a\x7f", "\ud800"):
        assert "visible ASCII" in refused(field, **{field: bad})
    for no_text in (None, 7, b"a", ["a"]):
        assert "not a text" in refused(field, **{field: no_text})


def test_a_stream_may_be_empty_and_nothing_else() -> None:
    assert accepted(event_stream="").event_stream == ""
    for field in ("event_type", "event_domain", "correlation_id", "external_id"):
        assert "is empty" in refused(field, **{field: ""})


@pytest.mark.parametrize("field", ["event_type", "event_domain", "event_stream"])
def test_a_name_that_looks_like_a_pattern_is_refused(field: str) -> None:
    for bad in ("*", "order.*", "or*er"):
        assert "patterns" in refused(field, **{field: bad})


@pytest.mark.parametrize(
    "external_id", ["a", " a ", "a b", "ü", "👩‍👩‍👧", "\u00a0", "é" * 255, "😀" * 255, "'\"\\%`;--", "العربية"]
)
def test_an_external_id_is_any_text_that_can_be_seen(external_id: str) -> None:
    assert accepted(external_id=external_id).external_id == external_id


@pytest.mark.parametrize("external_id", ["a\nb", "\x00", "\x1b", "\x7f", "\x85", "\u2028", "\u2029", "\ud800"])
def test_an_external_id_with_control_characters_is_refused(external_id: str) -> None:
    assert "control characters" in refused("external_id", external_id=external_id)


def test_an_external_id_that_is_too_long_or_no_text_is_refused() -> None:
    assert "has 256 characters" in refused("external_id", external_id="x" * 256)
    assert "not a text" in refused("external_id", external_id=7)
    assert accepted().external_id is None
