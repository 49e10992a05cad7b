"""The API as a process: starts, answers, drains when it is told to stop; and the commands around keys."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import TAKES_REQUESTS, settings_of
from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tests.support.processes import Process, tidings
from tests.support.sessions import connect
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow
OWN = "a-key-of-my-own"


async def started(start: Callable[[Process], Process], engine: Database, **more: str) -> tuple[Process, str]:
    process = start(tidings("run", "api", **settings_of(engine, **more)))
    found = await asyncio.to_thread(process.wait_for_line, TAKES_REQUESTS, 60)
    return process, found[1]


async def is_shut(url: str) -> bool:
    """To whoever comes now."""
    try:
        async with httpx.AsyncClient(timeout=20) as latecomer:
            await latecomer.get(f"{url}/healthz")
    except httpx.TransportError:
        return True
    return False


async def test_a_request_that_was_begun_is_answered_before_the_process_ends(
    start: Callable[[Process], Process], engine: Database
) -> None:
    process, url = await started(start, engine, TIDINGS_ADMIN_KEY=OWN)
    other = await connect(engine.url("event_ingest_writer"))
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {OWN}"}, timeout=30) as client:
        assert (await client.get("/readyz")).json()["ready"]
        assert b"tidings_depth" in (await client.get("/metrics")).content
        await other.run("BEGIN")
        await other.run("INSERT INTO events (event_type, payload, external_id) VALUES ('a', '1', 'held')")
        event = {"event_type": "a", "payload": 1, "external_id": "held"}
        waiting = asyncio.create_task(client.post("/v1/events", json=event))
        await somebody_waits(engine)
        process.terminate()
        await eventually(lambda: is_shut(url), what="nobody to be let in any more")
        assert not waiting.done()
        await other.run("COMMIT")
        assert (await waiting).json()["duplicate"]
    await other.close()
    assert await asyncio.to_thread(process.wait, 20) == 0
    assert "Traceback" not in process.output
    assert OWN not in process.output


async def test_a_port_that_is_taken_is_said_in_words(start: Callable[[Process], Process], engine: Database) -> None:
    _, url = await started(start, engine)
    second = start(tidings("run", "api", **settings_of(engine, TIDINGS_PORT=url.rpartition(":")[2])))
    await asyncio.to_thread(second.wait_for_line, "can't listen", 60)
    assert "Traceback" not in second.output


async def test_keys_are_made_listed_and_revoked_on_the_command_line(engine: Database, tmp_path: Path) -> None:
    shell = Shell(engine, tmp_path)

    def story() -> None:
        made = shell.json(
            "keys", "add", "--name", "shop", "--scope", "publisher", "--domain", "shop", "--expires", "90d"
        )
        assert made["key"].startswith("tid_")
        (listed,) = shell.json("keys", "list")
        assert listed["public_id"] == made["public_id"]
        assert (listed["scopes"], listed["event_domain"], listed["is_valid"]) == ("publisher", "shop", True)
        assert made["key"] not in json.dumps(listed)
        assert "Revoked" in shell.says("keys", "revoke", made["public_id"])
        assert "before" in shell.says("keys", "revoke", made["public_id"])
        assert not shell.json("keys", "list")[0]["is_valid"]
        assert "There is no key" in shell.says("keys", "revoke", "nobody", exit=1)
        assert "operator" in shell.says("keys", "add", "--name", "x", "--scope", "operator", "--domain", "a", exit=2)

    await asyncio.to_thread(story)
