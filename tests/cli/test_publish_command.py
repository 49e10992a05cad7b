"""`tidings publish` as a process, with the rights of the ingest alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.database import Database

pytestmark = pytest.mark.slow


def writer(engine: Database) -> dict[str, str]:
    """The environment of a process that knows no login but the writer's."""
    known = ("TIDINGS_DATABASE_URL_EVENT_INGEST_WRITER", "TIDINGS_SCHEMA", "TIDINGS_PREFIX")
    return {name: engine.environment()[name] for name in known}


def piped(payload: bytes, cwd: Path, environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tidings", "publish", "a", "-"]
    subprocess.run(command, input=payload, cwd=cwd, env=environment, check=True, timeout=60, capture_output=True)


async def test_an_event_is_published_and_its_duplicate_is_told(engine: Database, tmp_path: Path) -> None:
    options = ("--external-id", "ü 1", "--domain", "shop", "--stream", "s", "--correlation-id", "c-1", "--json")
    payload = ' {"b" : "é", "a":1}'
    first = json.loads(run("publish", "order.paid", payload, *options, cwd=tmp_path, env=writer(engine)).stdout)
    (row,) = await engine.sql("SELECT * FROM events", "observer")
    assert first == {"id": row["id"], "duplicate": False, "payload_differs": False}
    stored = {name: row[name] for name in ("event_type", "event_domain", "event_stream", "external_id", "payload")}
    assert [*stored.values(), row["correlation_id"]] == ["order.paid", "shop", "s", "ü 1", payload, "c-1"]

    again = run("publish", "order.paid", "{}", *options[:-1], cwd=tmp_path, env=writer(engine))
    assert again.stdout.startswith(f"event {first['id']} (duplicate")
    assert "another payload" in again.stdout
    assert await engine.value("SELECT COUNT(*) FROM events", "observer") == 1


async def test_the_payload_comes_from_the_line_from_a_file_or_from_standard_input(
    engine: Database, tmp_path: Path
) -> None:
    (tmp_path / "payload.json").write_bytes('{"from": "fïle"}\n'.encode())
    run("publish", "a", cwd=tmp_path, env=writer(engine))
    run("publish", "a", "@payload.json", cwd=tmp_path, env=writer(engine))
    piped(b'{"from": "stdin"}', tmp_path, writer(engine))
    rows = await engine.sql("SELECT payload FROM events ORDER BY id", "observer")
    assert [row["payload"] for row in rows] == ["{}", '{"from": "fïle"}\n', '{"from": "stdin"}']


async def test_what_is_refused_ends_with_2_and_leaves_no_row(engine: Database, tmp_path: Path) -> None:
    environment = {**writer(engine), "TIDINGS_MAX_PAYLOAD": "10B", "TIDINGS_MAX_NESTING": "2"}
    (tmp_path / "large").write_text('"' + "x" * 10_000 + '"')
    for arguments, said in {
        ("a", "[[[]]]"): "deeper than 2",
        ("a", "@large"): "at most 10",
        ("a", "@nowhere"): "can't be read",
        ("a", "--external-id", ""): "external_id is empty",
    }.items():
        assert said in run("publish", *arguments, cwd=tmp_path, exit=2, env=environment).stderr
    assert await engine.value("SELECT COUNT(*) FROM events", "observer") == 0
