"""Named statements mean the same on both engines, and the values in them come back as they went in."""

import asyncio
import datetime
import enum
import importlib
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.db.statement_files.operations import ClerkOperations
from tests.db.statement_files.shelf import Shelf, ask, do, opened_shelf
from tests.support.fault_proxy import FaultProxy
from tests.support.waiting import eventually
from tidings.db.dialect import DIALECTS, MARIADB, MYSQL, POSTGRESQL, Dialect
from tidings.db.engine import Engine
from tidings.db.mysql_literals import literal, literal_text
from tidings.db.postgresql import numbered_text, positional
from tidings.db.session import Row
from tidings.db.statements import Statement, compile_statement, load_statements, read_named
from tidings.errors import StatementFailed, StatementFileInvalid, TransientFailure

shelf = pytest.fixture(opened_shelf)

# --- the files -------------------------------------------------------------------------------------------------------


def test_a_file_is_a_list_of_named_texts() -> None:
    named = read_named(
        "-- first: what it does\nSELECT 1;\n\n-- second: more; of it\n\nSELECT 2\n -- and: no header\n", "f"
    )
    assert [*named] == ["first", "second"]
    assert (named["first"].purpose, named["first"].text) == ("what it does", "SELECT 1")
    assert (named["second"].purpose, named["second"].text) == ("more; of it", "SELECT 2\n -- and: no header")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("SELECT 1;\n-- a: b\nSELECT 2", "f.sql has text before its first"),
        ("-- a comment\n-- a: b\nSELECT 2", "f.sql has text before its first"),
        ("-- a: b\nSELECT 1;\n-- a: c\nSELECT 2", "f.sql names a twice"),
        ("-- a: b\n\n-- c: d\nSELECT 2", "f.sql has no text under a"),
        ("-- a: b\n ;", "f.sql has no text under a"),
    ],
)
def test_a_malformed_file_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(StatementFileInvalid, match=complaint):
        read_named(text, "f.sql")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Makes a package of statement files."""

    def make(**files: str) -> str:
        name = f"clerks_of_{request.node.name.partition('[')[0]}"
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        for file, text in files.items():
            (tmp_path / name / f"operations{file.replace('_', '.').removeprefix('.common')}.sql").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        importlib.invalidate_caches()
        return name

    return make


def test_an_override_replaces_the_text_on_its_engine_and_nothing_else(package: Callable[..., str]) -> None:
    name = package(_common="-- a: b\nSELECT 1;\n-- c: d\nSELECT 2", _mysql="-- c: other\nSELECT 3")
    texts = {dialect: {s.text for s in load_statements(name, DIALECTS[dialect]).values()} for dialect in DIALECTS}
    assert texts["postgresql"] == {f"/* {name}.a */ SELECT 1", f"/* {name}.c */ SELECT 2"}
    assert texts["mysql"] == texts["mariadb"] == {f"/* {name}.a */ SELECT 1", f"/* {name}.c */ SELECT 3"}


def test_the_nearest_override_wins(package: Callable[..., str]) -> None:
    name = package(_common="-- a: b\nSELECT 1", _mysql="-- a: b\nSELECT 2", _mariadb="-- a: b\nSELECT 3")
    assert [load_statements(name, d)["a"].text[-1] for d in (POSTGRESQL, MYSQL, MARIADB)] == ["1", "2", "3"]


def test_an_override_of_a_statement_that_nobody_wrote_is_refused(package: Callable[..., str]) -> None:
    name = package(_common="-- a: b\nSELECT 1", _mysql="-- z: typo\nSELECT 2")
    assert load_statements(name, POSTGRESQL)
    with pytest.raises(StatementFileInvalid, match="overrides statements that nobody wrote: z"):
        load_statements(name, MARIADB)


def test_an_override_of_an_empty_file_is_refused(package: Callable[..., str]) -> None:
    with pytest.raises(StatementFileInvalid, match="nobody wrote: a"):
        load_statements(package(_common="", _mysql="-- a: b\nSELECT 1"), MARIADB)


# --- the words -------------------------------------------------------------------------------------------------------


def compiled(text: str, dialect: Dialect) -> Statement:
    return compile_statement("clerk.it", text, dialect)


@pytest.mark.parametrize(
    ("text", "postgresql", "mariadb"),
    [
        ("{now}", "statement_timestamp()", "UTC_TIMESTAMP(6)"),
        (
            "{now + :seconds}",
            "(statement_timestamp() + make_interval(secs => $1))",
            "(UTC_TIMESTAMP(6) + INTERVAL ROUND(5 * 1000000) MICROSECOND)",
        ),
        (
            "{j.lease_until - :seconds}",
            "(j.lease_until - make_interval(secs => $1))",
            "(j.lease_until - INTERVAL ROUND(5 * 1000000) MICROSECOND)",
        ),
        ("id {in :ids}", "id = ANY ($1)", "id IN (1,2)"),
        (
            "{rows r(a bigint, b text)}",
            "SELECT * FROM unnest($1::bigint[], $2::text[])",
            "VALUES (1,'x'),(2,'y')",
        ),
        (
            "{pick :seconds_each double precision for j.id in :ids}",
            "($1::double precision[])[width_bucket(j.id, $2::bigint[])]",
            "ELT(INTERVAL(j.id, 1,2), 0.5e0,7.0e0)",
        ),
    ],
)
def test_each_word_is_put_into_the_words_of_the_engine(text: str, postgresql: str, mariadb: str) -> None:
    arguments = {"seconds": 5, "ids": [1, 2], "seconds_each": [0.5, 7e0], "r": [(1, "x"), (2, "y")]}
    assert numbered_text(compiled(text, POSTGRESQL)) == f"/* clerk.it */ {postgresql}"
    assert literal_text(compiled(text, MARIADB), arguments) == f"/* clerk.it */ {mariadb}"


def test_a_text_is_repeated_for_each_row_where_there_is_no_lateral() -> None:
    text = "{each lanes(id, room): SELECT id FROM s WHERE lane = lanes.id LIMIT lanes.room}"
    said = literal_text(compiled(text, MARIADB), {"lanes": [(1, 2), ("o'k", 4)]})
    first, second = "SELECT id FROM s WHERE lane = 1 LIMIT 2", "SELECT id FROM s WHERE lane = 'o\\'k' LIMIT 4"
    assert said == f"/* clerk.it */ ({first}) UNION ALL ({second})"


def test_mysql_wants_a_word_before_each_row_of_a_batch() -> None:
    """Outside of an INSERT; MariaDB does not know that word."""
    statement = compiled("WITH r(a, b) AS ({rows r(a bigint, b text)}) SELECT * FROM r", MYSQL)
    assert "AS (VALUES ROW(1,'x'),ROW(2,'y'))" in literal_text(statement, {"r": [(1, "x"), (2, "y")]})
    assert statement.arguments == {"r"}


@pytest.mark.parametrize("word", ["{nov}", "{now + 5}", "{in ids}", "{rows r}", "{rows r()}", "{rows r(a)}", "{}"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_unknown_word_is_refused(word: str, dialect: str) -> None:
    with pytest.raises(StatementFileInvalid, match=r"clerk\.it uses \{.*no word of " + dialect):
        compiled(f"SELECT {word}", DIALECTS[dialect])


def test_a_parameter_that_is_used_twice_is_sent_once() -> None:
    statement = compiled("SELECT :a, :b, :a", POSTGRESQL)
    assert numbered_text(statement) == "/* clerk.it */ SELECT $1, $2, $1"
    assert positional(statement, {"a": "x", "b": "y"}) == ["x", "y"]


async def test_strings_comments_and_casts_are_left_alone(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    (row,) = await ask(clerk, "odd_signs", id=7)
    assert dict(row) == {"words": """at 10:30 :id {now} 100% it's {"a": [1]} %s $1""", "more": 8}
    (row,) = await ask(clerk, "cast")
    assert row["answer"] == 42


async def test_time_is_the_servers_and_is_shifted_by_seconds_to_the_microsecond(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    moment = datetime.datetime(2026, 3, 29, 0, 59, 59, 999999, datetime.UTC)
    await keep(clerk, moment=moment)
    (row,) = await ask(clerk, "moments", id=1, seconds=86400.000001)
    shift = datetime.timedelta(seconds=86400, microseconds=1)
    assert abs(row["now"] - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(seconds=30)
    assert (row["later"] - row["now"], row["now"] - row["sooner"]) == (shift, shift)
    assert (row["after_it"], row["before_it"]) == (moment + shift, moment - shift)


async def test_in_a_list_is_the_list_also_when_it_is_empty(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    for id in (1, 2, 3):
        await keep(clerk, id, words=f"it's {id}")

    async def ids(name: str, **arguments: Any) -> list[int]:
        return [row["id"] for row in await ask(clerk, name, **arguments)]

    assert await ids("kept_among", ids=[1, 3, 9]) == [1, 3]
    assert await ids("kept_among", ids=(2,)) == [2]
    assert await ids("kept_among_words", all_words=["it's 3", "\\"]) == [3]
    assert await ids("kept_among", ids=[]) == await ids("kept_among_words", all_words=[]) == []
    assert await ids("kept_apart_from", ids=[1]) == [2, 3]
    assert await ids("kept_apart_from", ids=[]) == [1, 2, 3]


async def test_a_batch_is_one_statement_and_an_empty_one_is_none(shelf: Shelf) -> None:
    with FaultProxy(shelf.server.port, shelf.kind) as proxy:
        clerk = await shelf.clerk(proxy.url(shelf.admin_url))
        rows = [(id, None, id, id / 3, "x" * id, bytes([id]), MOMENT) for id in range(1, 200)]
        assert await do(clerk, "keep_rows", kept=rows) == 199
        assert await do(clerk, "keep_rows", kept=[]) == 0
        assert await ask(clerk, "joined", asked=[]) == ()
        assert [name for name in proxy.seen if name not in ("clerk.begin", "clerk.commit")] == [
            "statement_files.keep_rows"
        ]
        assert [tuple((await kept(clerk, id)).values()) for id in (1, 100, 199)] == [rows[0], rows[99], rows[198]]
        await shelf.close()


async def test_a_batch_can_be_joined_and_its_first_row_sets_no_bounds(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    for id in (1, 2, 3):
        await keep(clerk, id)
    asked = [(2, None), (1, "a"), (3, "much longer than the first"), (4, "nobody")]
    assert [tuple(row.values()) for row in await ask(clerk, "joined", asked=asked)] == [
        (1, "a"),
        (2, None),
        (3, asked[2][1]),
    ]


async def test_each_row_of_an_update_gets_the_value_at_its_place(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    for id in (1, 2, 3):
        await keep(clerk, id)
    changed = await do(
        clerk,
        "reword",
        ids=[3, 1],
        all_words=["it's %s", None],
        wholes=[None, 2**62],
        fractions=[0.1, 1e300],
        raws=[b"\x00'\\\xff", None],
    )
    rows = {id: await kept(clerk, id) for id in (1, 2, 3)}
    assert changed == 2
    assert (rows[3]["words"], rows[3]["whole"], rows[3]["fraction"], rows[3]["raw"]) == (
        "it's %s",
        None,
        0.1,
        b"\x00'\\\xff",
    )
    assert (rows[1]["words"], rows[1]["whole"], rows[1]["fraction"], rows[1]["raw"]) == (None, 2**62, 1e300, None)
    assert rows[2]["words"] is None


async def test_each_of_many_rows_gets_its_own_value_in_whatever_order_they_come(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    # Neighbours beyond what a float can tell apart.
    ids = [2**62 + number for number in range(100)]
    for id in ids:
        await keep(clerk, id)
    shuffled = random.Random(7).sample(ids, len(ids))
    nothing: list[None] = [None] * len(ids)
    words = [f"of {id}" for id in shuffled]
    await do(clerk, "reword", ids=shuffled, all_words=words, wholes=shuffled, fractions=nothing, raws=nothing)
    rows = [await kept(clerk, id) for id in ids]
    assert [(row["words"], row["whole"]) for row in rows] == [(f"of {id}", id) for id in ids]


async def test_the_first_few_of_each_group_are_one_statement(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    for id in range(1, 10):
        await keep(clerk, id, whole=id % 3)
    rows = await ask(clerk, "nearest", lanes=[(0, 2), (1, 1), (7, 5)])
    assert [(row["lane"], row["id"]) for row in rows] == [(0, 3), (0, 6), (1, 1)]


async def test_a_call_with_missing_or_unknown_arguments_is_refused(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    for arguments in ({}, {"id": 1, "more": 2}, {"ID": 1}):
        with pytest.raises(StatementFileInvalid, match=r"statement_files\.kept takes \['id'\] and was given"):
            await ask(clerk, "kept", **arguments)


RUNNING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '/* statement_files.dawdle */%'"
    " AND application_name = 'tidings clerk' AND state = 'active'",
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE '/* statement_files.dawdle */%'",
}


async def test_the_server_sees_the_name_of_each_statement(shelf: Shelf) -> None:
    """Statistics, slow logs and process lists of the server speak our language."""
    clerk = await shelf.clerk()
    dawdling = asyncio.create_task(ask(clerk, "dawdle", seconds=3))
    await eventually(lambda: shelf.value(RUNNING[shelf.family]), what="the statement to be seen by its name")
    await dawdling


# --- the values ------------------------------------------------------------------------------------------------------

MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, datetime.UTC)
NOTHING = dict.fromkeys(("flag", "whole", "fraction", "words", "raw", "moment"))


async def keep(clerk: Engine, id: int = 1, **values: Any) -> None:
    await do(clerk, "keep", id=id, **(NOTHING | values))


async def kept(clerk: Engine, id: int = 1) -> Row:
    (row,) = await ask(clerk, "kept", id=id)
    return row


class Rank(enum.IntEnum):
    HIGH = 3


class Mood(enum.StrEnum):
    GOOD = "go'od"


VALUES: dict[str, list[Any]] = {
    "flag": [None, True, False],
    "whole": [None, 0, 1, -1, 2**63 - 1, -(2**63) + 1, -(2**63), Rank.HIGH],
    "fraction": [
        None,
        0.0,
        0.1,
        1 / 3,
        0.1 + 0.2,
        1e16,
        1e-300,
        5e-324,
        1.7976931348623157e308,
        -2.5,
        123456789.123456789,
    ],
    "words": [
        None,
        "",
        "it's",
        'a "quoted" one',
        "back\\slash \\' \\n \\0 \\% \\_",
        "100 % %s %(a)s {0} {} {now} :id $1 ?",
        "two\nlines\r\nand\ttabs\x1a\x7f",
        "grüße 你好 \u200f\u202e👩‍👩‍👧‍👦 \U0010ffff",
        "-- no comment /* nor this */ ; DROP TABLE keepsakes",
        " padded ",
        "x" * 2**20,
        Mood.GOOD,
    ],
    "raw": [None, b"", bytes(range(256)), b"\\'\"%{}\x00", bytes(range(256)) * 4096],
    "moment": [
        None,
        MOMENT,
        MOMENT.replace(microsecond=0),
        MOMENT.astimezone(datetime.timezone(datetime.timedelta(hours=8))),
        MOMENT.astimezone(datetime.timezone(-datetime.timedelta(hours=9, minutes=30))),
        datetime.datetime(1000, 1, 1, tzinfo=datetime.UTC),
        # The very last microsecond is infinity to asyncpg.
        datetime.datetime(9999, 12, 31, 23, 59, 59, 999998, datetime.UTC),
        # The hour that Berlin has twice, and the one that it has not.
        datetime.datetime(2025, 10, 26, 1, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        datetime.datetime(2025, 3, 30, 2, 30, tzinfo=datetime.UTC),
    ],
}


@pytest.mark.parametrize("column", VALUES)
async def test_a_value_comes_back_as_it_went_in(shelf: Shelf, column: str) -> None:
    clerk = await shelf.clerk()
    for id, value in enumerate(VALUES[column]):
        await keep(clerk, id, **{column: value})
        assert (await kept(clerk, id))[column] == value
    rows = [(1000 + id, *(NOTHING | {column: value}).values()) for id, value in enumerate(VALUES[column])]
    await do(clerk, "keep_rows", kept=rows)
    for id, value in enumerate(VALUES[column]):
        assert (await kept(clerk, 1000 + id))[column] == value


async def test_floats_are_floats_and_moments_are_in_utc_when_they_come_back(shelf: Shelf) -> None:
    clerk = await shelf.clerk()
    await keep(clerk, fraction=2.5, moment=MOMENT.astimezone(datetime.timezone(datetime.timedelta(hours=8))))
    row = await kept(clerk)
    assert isinstance(row["fraction"], float)
    assert row["moment"].utcoffset() == datetime.timedelta(0)


ANY_VALUES = {
    "whole": st.integers(-(2**63), 2**63 - 1),
    "fraction": st.floats(allow_nan=False, allow_infinity=False),
    "words": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    "raw": st.binary(),
    "moment": st.datetimes(
        datetime.datetime(1000, 1, 2), datetime.datetime(9999, 12, 30), timezones=st.timezones(), allow_imaginary=False
    ),
}


@given(values=st.fixed_dictionaries(ANY_VALUES))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_value_comes_back_as_it_went_in(shelf: Shelf, values: dict[str, Any]) -> None:
    async def there_and_back(clerk: ClerkOperations) -> Row:
        await clerk.do("forget_all")
        await clerk.do("keep", id=1, flag=None, **values)
        (row,) = await clerk.ask("kept", id=1)
        return row

    row = await ClerkOperations.step(shelf._opened[0] if shelf._opened else await shelf.clerk(), there_and_back)
    # Python calls a moment that a clock shows twice equal to nothing in another zone.
    sent = {**values, "moment": values["moment"].astimezone(datetime.UTC)}
    assert {name: row[name] for name in values} == sent


@pytest.mark.parametrize("where", ["alone", "in a batch"])
async def test_a_moment_without_a_time_zone_is_refused(shelf: Shelf, where: str) -> None:
    """It would mean another moment on each machine, and on each engine."""
    clerk = await shelf.clerk()
    naive = MOMENT.replace(tzinfo=None)
    rows = [(1, *(NOTHING | {"moment": MOMENT}).values()), (2, *(NOTHING | {"moment": naive}).values())]
    with pytest.raises(ValueError, match="has no time zone"):
        await (keep(clerk, moment=naive) if where == "alone" else do(clerk, "keep_rows", kept=rows))
    assert await shelf.value("SELECT COUNT(*) FROM keepsakes") == 0
    assert await ask(clerk, "kept", id=1) in ([], ())


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_float_that_is_no_number_is_refused_where_it_can_not_be_kept(value: float) -> None:
    """PostgreSQL can keep them; for MySQL and MariaDB they would be the names of columns."""
    with pytest.raises(ValueError, match="is no number that this database can keep"):
        literal(value)


UNFIT = {
    "whole": 2**63,
    "moment": datetime.timedelta(1),
    "words": "half a \ud800 sign",
}


@pytest.mark.parametrize("column", UNFIT)
async def test_a_value_that_fits_nowhere_is_an_error_that_is_not_tried_again(shelf: Shelf, column: str) -> None:
    clerk = await shelf.clerk()
    attempts = 0

    async def work(operations: ClerkOperations) -> None:
        nonlocal attempts
        attempts += 1
        await operations.do("keep", id=1, **(NOTHING | {column: UNFIT[column]}))

    with pytest.raises((StatementFailed, ValueError, TypeError)) as refusal:
        await ClerkOperations.step(clerk, work)
    assert not isinstance(refusal.value, TransientFailure)
    assert attempts == 1
    await keep(clerk, 2)
    assert await kept(clerk, 2)
