"""What is accepted is kept and given back byte for byte on every engine; what is refused leaves no row."""

import json
import random
from contextlib import suppress

import pytest

from tests.roles.ingest.events import stored
from tests.support.database import Database
from tidings.decisions.accepting import accept
from tidings.decisions.texts import DEEPEST
from tidings.errors import EventRefused
from tidings.model.event import EventLimits, NewEvent
from tidings.roles.ingest.service import Ingest

LIMITS = EventLimits(max_payload=1 << 20, max_nesting=1000)
STRINGS = ["a", "", "é😀", "\x7f", "\\u0000", "\\ud83d\\ude00", "\\ud800", "\\n\\/\\\\", '\\"', "\\x", "\t", "[{"]
SCALARS = ["0", "-0", "1.5e-3", "1E400", "12345678901234567890", "01", "1.", "-", "NaN", "true", "null", "nul", "1e"]
BLANKS = ["", "", "", " ", "\n", "\t\r", "\x0b", "\u00a0"]
KEPT = [
    ' { "b" :1,\r\n\t"a": [ ] } \n',
    '{"a":1,"a":2,"\\u0000":"\\u0000"}',
    '"\\ud83d\\ude00 \\/ \x7f\u2028\ufffe😀 \' %s \\\\ \\" "',
    "9" * 5000,
    "-1e400",
    "[" * DEEPEST + "]" * DEEPEST,
    '{"a":' * (DEEPEST - 1) + "[]" + "}" * (DEEPEST - 1),
    json.dumps("ü" * (128 * 1024 - 1), ensure_ascii=False),
    json.dumps("\\" * (256 * 1024 - 1)),
    json.dumps("x" * ((1 << 20) - 2)),
]


def accepted(text: str | bytes) -> NewEvent:
    return accept("a", text, correlation_id="c", limits=LIMITS)


async def test_accepted_payloads_come_back_byte_for_byte(ingest: Ingest, engine: Database) -> None:
    published = await ingest.publish([accepted(text) for text in KEPT])
    rows = await stored(engine)
    assert [rows[one.id]["payload"] for one in published] == KEPT


def nearly_json(chance: random.Random, depth: int = 0) -> str:
    """Text that looks like JSON, about half of it wrong somewhere."""

    def inner() -> str:
        return chance.choice(BLANKS[:-2]) + nearly_json(chance, depth + 1) + chance.choice(BLANKS[:-2])

    match chance.choice(["text", "scalar", "list", "object"] if depth < 3 else ["text", "scalar"]):
        case "text":
            return f'"{chance.choice(STRINGS)}{chance.choice(STRINGS[:6])}"'
        case "scalar":
            return chance.choice(BLANKS if depth == 0 else BLANKS[:-2]) + chance.choice(SCALARS)
        case "list":
            return f"[{','.join(inner() for _ in range(chance.randint(0, 2)))}{chance.choice(['', '', '', ','])}]"
        case _:
            return (
                "{" + ",".join(f'"{chance.choice(STRINGS[:6])}":{inner()}' for _ in range(chance.randint(0, 2))) + "}"
            )


async def test_whatever_is_accepted_every_engine_takes(ingest: Ingest, engine: Database) -> None:
    """Had we accepted a text that the database refuses, the whole request would fail."""
    chance = random.Random(4)
    texts = sorted({nearly_json(chance) for _ in range(6000)})
    events = []
    for text in texts:
        with suppress(EventRefused):
            events.append(accepted(text))
    assert len(texts) / 5 < len(events) < len(texts) * 4 / 5
    published = await ingest.publish(events)
    rows = await stored(engine)
    assert [rows[one.id]["payload"] for one in published] == [event.payload for event in events]


async def test_other_fields_at_their_limits_come_back_too(ingest: Ingest, engine: Database) -> None:
    given = accept(
        "!~" * 50,
        {},
        external_id="😀" * 255,
        event_domain="~" * 100,
        event_stream="$" * 100,
        correlation_id="#" * 128,
        limits=LIMITS,
    )
    (published,) = await ingest.publish([given])
    assert given.__dict__.items() <= (await stored(engine))[published.id].items()


@pytest.mark.parametrize(
    "payload", ["{", "NaN", '"\\ud800"', "[" * 32 + "]" * 32, '"' + "x" * (1 << 20) + '"', b"\xff"]
)
async def test_a_refused_payload_leaves_no_row(ingest: Ingest, engine: Database, payload: str | bytes) -> None:
    with pytest.raises(EventRefused):
        await ingest.publish([accepted(payload)])
    assert await stored(engine) == {}
