"""`subscriptions verify` and `test` as a person uses them, with `listen` at the other end and a verifier between."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.database import Database
from tests.support.processes import Process, tidings

pytestmark = pytest.mark.slow

SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
ALLOWED = {
    "TIDINGS_SECRET_KEYS": "the-key-of-the-tests",
    "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
    "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
}


class Person:
    """Types `tidings subscriptions …`, and has a verifier running and a receiver listening."""

    def __init__(self, engine: Database, cwd: Path, start: Callable[[Process], Process]) -> None:
        self.environment = {**engine.environment(), **ALLOWED, "TIDINGS_LOG_LEVEL": "info"}
        self.cwd = cwd
        self._start = start

    def listens(self, *words: str) -> tuple[Process, str]:
        process = self._start(tidings("listen", "--port", "0", "--json", *words))
        port = process.wait_for_line(r"Listening at http://127\.0\.0\.1:(\d+)/", 20)[1]
        return process, f"http://127.0.0.1:{port}/hook"

    def verifies(self) -> Process:
        return self._start(tidings("run", "verifier", **self.environment))

    def types(self, *words: str, exit: int = 0) -> str:
        ended = run("subscriptions", *words, cwd=self.cwd, exit=exit, env=self.environment)
        return ended.stdout + ended.stderr

    def adds(self, url: str, *more: str) -> str:
        ended = run(
            *("subscriptions", "add", "--type", "*", "--url", url, "--secret", SECRET, "--json", *more),
            cwd=self.cwd,
            env=self.environment,
        )
        return str(json.loads(ended.stdout)["id"])


@pytest.fixture
def person(engine: Database, tmp_path: Path, start: Callable[[Process], Process]) -> Person:
    return Person(engine, tmp_path, start)


async def test_an_endpoint_is_verified_and_tried_out(person: Person) -> None:
    """Both modes, by the receiver that is part of the product."""
    receiver, url = person.listens("--secret", SECRET)
    person.verifies()
    for mode in ("proof", "echo"):
        id = person.adds(url, "--verification", mode)
        said = person.types("verify", id)
        assert f"Subscription {id} is verified." in said
        assert "active · verified" in said
    assert "was verified already" in person.types("verify", id)
    shown = json.loads(person.types("test", id, "--json"))
    assert (shown["outcome"], shown["status_class"], shown["error_code"]) == ("passed", "2xx", None)
    told = json.loads(receiver.wait_for_line("tidings.test").string)
    assert (told["signed"], told["event_type"], told["attempt"]) == (True, "tidings.test", "1")


async def test_an_endpoint_that_does_not_know_the_secret_is_not_verified(engine: Database, person: Person) -> None:
    _, url = person.listens()
    verifier = person.verifies()
    id = person.adds(url)
    said = person.types("verify", id, exit=1)
    assert "did not answer the challenge rightly" in said
    assert "is verified" not in said
    assert not await engine.value(f"SELECT verified FROM subscriptions WHERE id = {id}")
    # The operator's log says more.
    assert "response_status" in verifier.wait_for_line("endpoint called").string


async def test_without_a_verifier_there_is_no_verdict_and_the_task_waits(engine: Database, person: Person) -> None:
    id = person.adds("http://127.0.0.1:1/hook")
    said = person.types("verify", id, "--wait", "100ms", exit=1)
    assert "tidings run verifier" in said
    assert await engine.value("SELECT biz_type FROM sys_pending_tasks WHERE status = 0") == "subscription.verify"
    assert "is active · unverified" in person.types("test", id, exit=2)


async def test_a_test_that_the_endpoint_does_not_take_ends_with_1_and_its_code(person: Person) -> None:
    _, url = person.listens("--answer", "503")
    person.verifies()
    id = person.adds(url, "--verification", "none")
    said = person.types("test", id, exit=1)
    assert "answered 5xx in" in said
    assert "(http_503)" in said
