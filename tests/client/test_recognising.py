"""Connections are known by the names of their types; importing Tidings loads no driver."""

import subprocess
import sys
from typing import Any

import pytest
import sqlalchemy
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

import tidings
from tidings.client.binding import bind, format_mark, hex_mark, number_mark
from tidings.db.dialect import DIALECTS, MARIADB, MYSQL, POSTGRESQL, dialect_of
from tidings.db.statements import compile_statement
from tidings.errors import ServerUnsuitable

HEAVY = ("asyncpg", "asyncmy", "psycopg", "sqlalchemy", "django", "pymysql", "cryptography", "typer", "rich", "asyncio")
NOT_ON_WINDOWS = ("fcntl", "pwd", "grp", "uvloop", "resource", "termios")


def in_a_fresh_python(text: str) -> str:
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60).stdout


def test_importing_tidings_and_looking_at_publish_loads_nothing_heavy() -> None:
    said = in_a_fresh_python(
        "import sys, tidings; tidings.publish, tidings.publish_many, tidings.Event\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert said == "[]\n"


def test_publishing_needs_nothing_that_windows_has_not() -> None:
    said = in_a_fresh_python(
        f"import sys; sys.modules.update(dict.fromkeys({NOT_ON_WINDOWS}))\n"
        "import tidings; print(tidings.publish.__name__)"
    )
    assert said == "publish\n"


def test_everything_that_is_exported_is_there() -> None:
    assert all(getattr(tidings, name) is not None for name in tidings.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tidings.nothing


def sqlite() -> sqlalchemy.Engine:
    return sqlalchemy.create_engine("sqlite://", poolclass=StaticPool)


@pytest.mark.parametrize(
    ("connection", "named"),
    [
        (None, "builtins.NoneType"),
        ("postgresql://…", "builtins.str"),
        (sqlite(), "sqlalchemy.engine.base.Engine"),
        (sqlite().connect(), "sqlalchemy.engine.base.Connection over pysqlite"),
        (Session(sqlite()), "sqlalchemy.orm.session.Session over pysqlite"),
    ],
)
def test_what_is_no_connection_of_ours_is_refused_with_the_list_of_those_that_are(connection: Any, named: str) -> None:
    with pytest.raises(tidings.TidingsError) as refused:
        tidings.publish(connection, "a", {})
    assert isinstance(refused.value, TypeError)
    assert refused.value.what == f"{named} is no connection that Tidings can write on."
    for known in ("psycopg (Connection, AsyncConnection)", "asyncpg", "django", "AsyncSession", "MySQLdb", "asyncmy"):
        assert known in refused.value.remedy


def test_mysql_is_refused_as_it_does_not_tell_its_ids() -> None:
    class Connection:
        __module__ = "pymysql.connections"

        def get_server_info(self) -> str:
            return "8.0.36"

    with pytest.raises(ServerUnsuitable, match="This server is MySQL"):
        tidings.publish(Connection(), "a", {})


def test_a_server_of_the_mysql_family_is_known_by_its_version() -> None:
    assert dialect_of("5.5.5-10.11.19-MariaDB-0+deb12u1") is MARIADB
    assert dialect_of("8.0.36-0ubuntu0.22.04.1") is MYSQL


def test_a_table_is_plain_at_home_and_qualified_elsewhere() -> None:
    for name, qualified in {
        "postgresql": '"shop".events',
        "mariadb": "`shop`.events",
        "mysql": "`shop`.events",
    }.items():
        text = "SELECT 1 FROM {table events}"
        assert compile_statement("it", text, DIALECTS[name]).text == "/* it */ SELECT 1 FROM events"
        assert compile_statement("it", text, DIALECTS[name], "shop").text == f"/* it */ SELECT 1 FROM {qualified}"


def test_values_are_bound_in_the_marks_of_the_driver() -> None:
    rows = {"r": [(1, "é%", None), (2, "", "x")], "n": 7}
    arrays = compile_statement("it", "SELECT '5%', :n, unnest(:r.a, :r.b, :r.c), :n", POSTGRESQL)
    columns = ([1, 2], ["é%", ""], [None, "x"])
    assert bind(arrays, rows, format_mark) == (
        "/* it */ SELECT '5%%', %s, unnest(%s, %s, %s), %s",
        (7, *columns, 7),
    )
    assert bind(arrays, rows, number_mark) == ("/* it */ SELECT '5%', $1, unnest($2, $3, $4), $5", (7, *columns, 7))
    written = compile_statement("it", "SELECT :n {rows r(a bigint, b text, c text)} '{}'", MARIADB)
    assert bind(written, rows, hex_mark) == (
        "/* it */ SELECT %s VALUES (%s,_utf8mb4 x%s,NULL),(%s,_utf8mb4 x%s,_utf8mb4 x%s) '{}'",
        (7, 1, "c3a925", 2, "", "78"),
    )
