"""Cursors, settings and payloads, whatever is given: taken as it is meant, or refused with a typed error."""

import json
from pathlib import Path

import pytest

from tests.fuzz.mutating import mutated, mutated_texts
from tests.settings.loading import loaded
from tests.support.database import Database
from tidings.api.cursors import Cursors
from tidings.api.problems import Refused
from tidings.decisions.accepting import accept
from tidings.errors import EventRefused, SettingsInvalid
from tidings.model.event import EventLimits, NewEvent
from tidings.roles.ingest.service import Ingest

COUNTS = [4_000, pytest.param(1_000_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
SETTINGS_WORDS = [
    *(b"=", b'"', b"[", b"]", b"\n", b"s", b"ms", b"-1", b"1e400", b"nan", b"'''", b"#", b"{", b"}", b"0x", b"true"),
    b"2026-01-01",
]
DEFAULTS = Path(__file__).parents[2] / "src" / "tidings" / "settings" / "defaults.toml"
LIMITS = EventLimits(max_payload=300, max_nesting=8)
PAYLOADS = [
    '{"a": [1, 2.50, -0, 1e5], "b": {"c": null, "d": true}}',
    '"\\u0000 \\ud83d\\ude00 é😀 \\\\ \\" \\/"',
    "[[[[[[[[]]]]]]]]",
    '{"a":1,"a":2}',
    " 12345678901234567890 ",
    json.dumps("x" * 298),
]
PAYLOAD_WORDS = [
    *("[", "]", "{", "}", ":", ",", '"', "\\", "\\u", "\\ud800", "\\u0000", "NaN", "Infinity", "1e400", "-", "0", "\0"),
    *("\t", "\n", "\x0b", "\u00a0", "\ufeff", "nul", "true", "9" * 40, "😀", "'", "%s", "/*", "//"),
]


@pytest.mark.parametrize("count", COUNTS)
def test_no_cursor_is_taken_that_was_not_given(count: int) -> None:
    cursors = Cursors("the secret")
    places = {cursors.written("events", place): place for place in ([1], [2, "a"], ["é", 10**15])}
    others = [cursors.written("sagas", [1]), Cursors("another").written("events", [1])]
    taken = 0
    for cursor in mutated_texts([*places, *others], ["=", "-", "_", "A", "é", "\0", "+/", "[1]", " "], count):
        try:
            place = cursors.read("events", cursor)
        except Refused:
            continue
        taken += 1
        # Some other spelling of the same bytes may pass; another place may not.
        assert place in places.values(), cursor
    assert taken >= len(places)


@pytest.mark.parametrize("count", [150, pytest.param(20_000, marks=[pytest.mark.full, pytest.mark.timeout(1800)])])
def test_any_settings_file_is_settings_or_a_list_of_problems(count: int, tmp_path: Path) -> None:
    sections = [f"[{part}" for part in DEFAULTS.read_text("utf-8").split("\n[")[1:]]
    taken = 0
    for text in mutated([part.encode() for part in sections], SETTINGS_WORDS, count):
        (tmp_path / "tidings.toml").write_bytes(text)
        problems = problems_of_file(tmp_path)
        taken += problems is None
        assert problems is None or (problems and all(map(str.isprintable, problems))), problems
    assert taken


def problems_of_file(directory: Path) -> list[str] | None:
    try:
        loaded(directory=directory)
    except SettingsInvalid as invalid:
        return invalid.problems
    return None


def acceptable(count: int, seed: int = 1) -> list[NewEvent]:
    """What is accepted of so many texts; each is valid JSON to others, within the limits, and as it was written."""
    found = []
    for number, text in enumerate(mutated_texts(PAYLOADS, PAYLOAD_WORDS, count, seed)):
        try:
            event = accept("fuzz", text, correlation_id=f"f{number}", limits=LIMITS)
        except EventRefused:
            continue
        assert event.payload == text
        assert len(text.encode()) <= LIMITS.max_payload
        json.loads(text, parse_constant=_no_constant)
        assert _depth(text) <= LIMITS.max_nesting
        found.append(event)
    return found


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def _depth(text: str) -> int:
    deepest = depth = 0
    in_string = escaped = False
    for sign in text:
        if in_string:
            in_string = escaped or sign != '"'
            escaped = sign == "\\" and not escaped
        elif sign == '"':
            in_string = True
        else:
            depth += (sign in "[{") - (sign in "]}")
            deepest = max(deepest, depth)
    return deepest


@pytest.mark.parametrize("count", COUNTS)
def test_every_payload_is_json_within_the_limits_or_refused(count: int) -> None:
    assert len(acceptable(count)) > count // 50


@pytest.mark.slow
async def test_whatever_is_accepted_every_engine_keeps_byte_for_byte(engine: Database) -> None:
    ingest = Ingest(await engine.open("event_ingest_writer"))
    events = acceptable(3_000, seed=2)
    try:
        for start in range(0, len(events), 400):
            await ingest.publish(events[start : start + 400])
    finally:
        await ingest.close()
    text = "CAST(payload AS text)" if engine.family == "postgresql" else "payload"
    rows = await engine.sql(f"SELECT correlation_id, {text} AS payload FROM events")
    assert {row["correlation_id"]: row["payload"] for row in rows} == {
        one.correlation_id: one.payload for one in events
    }
