"""`tidings up`: everything in one command; the second start finds everything again."""

import asyncio
import itertools
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import TAKES_REQUESTS
from tests.support.commands import run, single_login
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.receiver import Receiver
from tests.support.waiting import eventually
from tidings.db.names import Names

pytestmark = pytest.mark.slow

KEY = {"TIDINGS_SECRET_KEYS": "a-key-for-the-tests-of-up"}
ALLOWED = {"TIDINGS_PORT": "0", "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1", "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8"}
_numbers = itertools.count(1)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


class Installed:
    """An installation that only `up` has made, and commands beside it."""

    def __init__(self, folder: Path, start: Callable[[Process], Process], environment: dict[str, str]) -> None:
        self.folder = folder
        self.start = start
        self.environment = environment | ALLOWED

    async def up(self) -> Process:
        process = tidings("up", **self.environment)
        process.cwd = self.folder
        self.start(process)
        await asyncio.to_thread(process.wait_for_line, "Ctrl-C stops everything", 60)
        return process

    async def says(self, *words: str) -> str:
        said = await asyncio.to_thread(lambda: run(*words, cwd=self.folder, env=self.environment))
        return said.stdout

    async def subscribe(self, url: str) -> str:
        words = ("subscriptions", "add", "--type", "*", "--url", url, "--verification", "none", "--json")
        secret: str = json.loads(await self.says(*words))["secret"]
        return secret

    async def ended(self, process: Process, word: signal.Signals) -> None:
        os.kill(process.pid, word)
        assert await asyncio.to_thread(process.wait, 20) == 0, process.output
        assert "Stopped." in process.output
        assert "Traceback" not in process.output


async def published_by_http(process: Process, key: str, event: str) -> None:
    found = await asyncio.to_thread(process.wait_for_line, TAKES_REQUESTS, 30)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=found[1], headers=headers, timeout=20) as client:
        assert (await client.post("/v1/events", content=event)).status_code == 202


async def delivers_again_and_again(installed: Installed, receiver: Receiver) -> None:
    first = await installed.up()
    assert "The gates are open" in first.output
    (key,) = re.findall(r"shown only now: (tid_\S+)", first.output)
    secret = await installed.subscribe(receiver.url("/hook"))
    await installed.says("publish", "order.paid", '{"n":  1}')
    await eventually(lambda: receiver.answered, 20, "the first event")
    await installed.ended(first, signal.SIGINT)
    second = await installed.up()
    assert "The gates are open" not in second.output
    assert "tid_" not in second.output
    await published_by_http(second, key, '{"event_type": "order.paid", "payload": {"n":  2}}')
    await eventually(lambda: len(receiver.answered) == 2, 20, "the second event")
    assert len(json.loads(await installed.says("routes", "list", "--json"))) == 1
    await installed.ended(second, signal.SIGTERM)
    assert [request.body for request in receiver.requests] == [b'{"n":  1}', b'{"n":  2}']
    for request in receiver.requests:
        request.verify(secret)


async def test_up_delivers_from_an_empty_folder_and_finds_everything_again(
    folder: Path, start: Callable[[Process], Process], receiver: Receiver
) -> None:
    await delivers_again_and_again(Installed(folder, start, {}), receiver)


async def test_up_works_on_a_server_of_ones_own(
    engine: Database, folder: Path, start: Callable[[Process], Process], receiver: Receiver
) -> None:
    name = f"up{next(_numbers)}"
    own = Database(engine.server, Names(schema=name, prefix=name))
    await delivers_again_and_again(Installed(folder, start, single_login(own) | KEY), receiver)
    rows = await own.sql("SELECT action FROM audit_log ORDER BY id", "admin")
    assert [row["action"] for row in rows][:3] == ["route.created", "gate.opened", "gate.opened"]


async def test_up_leaves_closed_what_was_there_before_it(
    throwaway: Database, folder: Path, start: Callable[[Process], Process]
) -> None:
    """`tidings migrate` leaves gates closed, and only a start that creates the schema opens them."""
    installed = Installed(folder, start, throwaway.environment() | KEY)
    process = await installed.up()
    assert not await throwaway.sql("SELECT * FROM gates")
    assert not await throwaway.sql("SELECT * FROM routes")
    await installed.ended(process, signal.SIGINT)


def test_a_worker_without_keys_says_so_at_once(engine: Database, tmp_path: Path) -> None:
    said = run("run", "worker", cwd=tmp_path, exit=1, env=engine.environment())
    assert "TIDINGS_SECRET_KEYS" in said.stderr


def test_only_the_router_can_be_run_once(engine: Database, tmp_path: Path) -> None:
    assert (
        "--once is for router alone"
        in run("run", "all", "--once", cwd=tmp_path, exit=2, env=engine.environment()).stderr
    )


async def test_what_a_person_must_mend_ends_it_before_it_has_begun(throwaway: Database, tmp_path: Path) -> None:
    environment = throwaway.environment() | KEY
    wrong = throwaway.url("job_worker").replace(throwaway.passwords[throwaway.names.login("job_worker")], "wrong")
    bad = environment | {"TIDINGS_DATABASE_URL_JOB_WORKER": wrong}
    assert "refused the login" in run("run", "all", cwd=tmp_path, exit=1, env=bad).stderr
    await throwaway.sql("DELETE FROM schema_migrations WHERE version = 3")
    assert "Run `tidings migrate`" in run("run", "router", cwd=tmp_path, exit=1, env=environment).stderr
