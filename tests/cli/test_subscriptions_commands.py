"""`tidings subscriptions …` as a person and as a program use it, each role through its own login."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import run
from tests.support.database import Database
from tests.support.processes import INHERITED
from tidings.vault import Vault, open_headers, valid_secrets

pytestmark = pytest.mark.slow

KEY = "the-key-of-the-tests"
ALLOWED = {"TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1", "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8"}
URL = ("--url", "https://example.com/hook")
HERE = ("--url", "http://127.0.0.1:9000/hook", "--verification", "none")


class Person:
    """Types `tidings subscriptions …` for one installation."""

    def __init__(self, engine: Database, cwd: Path) -> None:
        self.environment = {**engine.environment(), "TIDINGS_SECRET_KEYS": KEY, **ALLOWED}
        self.cwd = cwd

    def types(self, *words: str, exit: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return run("subscriptions", *words, cwd=self.cwd, exit=exit, env=self.environment | environment)

    def json(self, *words: str) -> Any:
        return json.loads(self.types(*words, "--json").stdout)


@pytest.fixture
def person(engine: Database, tmp_path: Path) -> Person:
    return Person(engine, tmp_path)


async def rows(engine: Database, table: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql(f"SELECT * FROM {table} ORDER BY id")]


def secrets_of(row: Mapping[str, Any]) -> list[str]:
    return valid_secrets(Vault([KEY]), row["id"], row["secrets"], 0)


async def test_add_prints_the_id_and_the_secret_once(engine: Database, person: Person) -> None:
    made = person.json("add", "--type", "order.*", *URL)
    (row,) = await rows(engine, "subscriptions")
    assert row["id"] == made["id"]
    assert secrets_of(row) == [made["secret"]]
    assert (made["verified"], made["state"]) == (False, "active · unverified")
    for later in (("list",), ("show", str(made["id"])), ("pause", str(made["id"]))):
        said = person.types(*later, "--json")
        assert made["secret"] not in said.stdout + said.stderr
        assert "whsec" not in said.stdout + said.stderr


async def test_everything_that_can_be_said_of_a_new_one(engine: Database, person: Person) -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
    words = "--type a --domain shop --verification echo --max-retry-limit 3 --base-delay-seconds 2s"
    limits = "--timeout-seconds=10s --max-in-flight 4"
    person.types(
        *("add", *URL, *words.split(), *limits.split(), "--description", "for the books", "--secret", secret),
        *("--header", "X-Key: a: b", "--header", "Authorization: Bearer x"),
    )
    (row,) = await rows(engine, "subscriptions")
    assert (row["event_type"], row["event_domain"], row["verification"]) == ("a", "shop", "echo")
    assert (row["max_retry_limit"], row["base_delay_seconds"]) == (3, 2.0)
    assert (row["timeout_seconds"], row["max_in_flight"]) == (10.0, 4)
    assert (row["description"], secrets_of(row)) == ("for the books", [secret])
    assert open_headers(Vault([KEY]), row["id"], row["headers"]) == {"x-key": "a: b", "authorization": "Bearer x"}
    (audit,) = await rows(engine, "audit_log")
    assert audit["actor"].startswith("cli:")


async def test_without_verification_both_roles_act_one_after_the_other(engine: Database, person: Person) -> None:
    made = person.json("add", "--type", "*", *HERE)
    assert (made["verified"], made["state"]) == (True, "active · trusted, not verified")
    assert made["config_version"] == (await rows(engine, "subscriptions"))[0]["config_version"]
    person.types("edit", str(made["id"]), "--url", "http://127.0.0.1:9001/other")
    (row,) = await rows(engine, "subscriptions")
    assert (row["callback_url"], row["pending_callback_url"]) == ("http://127.0.0.1:9001/other", None)
    actions = [audit["action"] for audit in await rows(engine, "audit_log")]
    assert actions == [f"subscription.{what}" for what in ("created", "trusted", "edited", "trusted")]


async def test_what_was_interrupted_between_the_two_roles_is_finished_by_verify(
    engine: Database, person: Person
) -> None:
    """The verifier's login is refused, as if the command had been killed there: the secret was printed all the same."""
    login, url = engine.names.login("subscription_verifier"), engine.url("subscription_verifier")
    broken = {"TIDINGS_DATABASE_URL_SUBSCRIPTION_VERIFIER": url.replace(engine.passwords[login], "wrong")}
    said = person.types("add", "--type", "*", *HERE, "--json", exit=1, **broken)
    made = json.loads(said.stdout)
    assert made["secret"].startswith("whsec_")
    assert not made["verified"]
    assert person.json("verify", str(made["id"]))["verified"]
    assert not person.json("verify", str(made["id"]))["changed"]


async def test_edit_changes_what_is_given_and_default_resets_a_limit(engine: Database, person: Person) -> None:
    id = str(person.json("add", "--type", "a", *URL, "--max-retry-limit", "3", "--header", "x: y")["id"])
    edited = person.json("edit", id, "--type", "b.*", "--max-retry-limit", "default", "--timeout-seconds", "9")
    assert (edited["event_type"], edited["max_retry_limit"], edited["timeout_seconds"]) == ("b.*", None, 9.0)
    assert edited["changed"]
    assert not person.json("edit", id, "--type", "b.*")["changed"]
    person.types("edit", id, "--no-headers")
    assert (await rows(engine, "subscriptions"))[0]["headers"] is None
    version = str(edited["config_version"])
    assert (
        "Somebody has changed it"
        in person.types("edit", id, "--type", "c", "--expected-version", version, exit=1).stderr
    )


def test_a_url_that_waits_is_shown_with_the_one_in_force(person: Person) -> None:
    id = str(person.json("add", "--type", "a", *URL)["id"])
    said = person.types("edit", id, "--url", "https://example.com/new")
    assert "new URL pending" in said.stdout
    assert f"subscriptions verify {id}" in said.stderr
    shown = person.types("show", id).stdout
    assert "https://example.com/hook" in shown
    assert "https://example.com/new" in shown


async def test_show_says_how_an_endpoint_fares(engine: Database, person: Person) -> None:
    """How many deliveries may be under way, how it failed, and when something is tried next."""
    id = str(person.json("add", "--type", "a", *HERE)["id"])
    assert "window 8 of 2,000" in person.types("show", id).stdout
    await engine.sql(
        "INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_failure_at, last_error_code)"
        f" VALUES ({id}, 1, 14, '2026-01-02', 'http_503')"
    )
    await engine.sql(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status, next_attempt_at)"
        f" VALUES (1, {id}, 'c', 'PendingRetry', '2100-01-02 12:03:10')"
    )
    shown = person.types("show", id).stdout
    assert "window 1 of 2,000, 14 failures in a row, last http_503, next try 2100-01-02 12:03:10" in shown
    assert "for each worker" in shown
    assert person.json("show", id)["lane"] == {
        "window_size": 1,
        "window_max": 2000,
        "failures": 14,
        "last_error_code": "http_503",
        "is_under_way": False,
        "last_failure_at": "2026-01-02T00:00:00+00:00",
        "next_try_at": "2100-01-02T12:03:10+00:00",
    }


def test_the_switches_say_when_there_was_nothing_to_do(person: Person) -> None:
    id = str(person.json("add", "--type", "a", *URL)["id"])
    for verb, undo in (("pause", "resume"), ("deactivate", "activate")):
        assert "nothing was written" not in person.types(verb, id).stdout
        assert "nothing was written" in person.types(verb, id).stdout
        person.types(undo, id)
    assert person.json("show", id)["state"] == "active · unverified"


async def test_rotate_secret_prints_the_new_one_and_keeps_the_old_for_the_overlap(
    engine: Database, person: Person
) -> None:
    made = person.json("add", "--type", "a", *URL)
    rotated = person.json("rotate-secret", str(made["id"]), "--overlap", "1h")
    assert rotated["overlap_seconds"] == 3600
    (row,) = await rows(engine, "subscriptions")
    assert secrets_of(row) == [rotated["secret"], made["secret"]]
    said = person.types("rotate-secret", str(made["id"]), "--overlap", "0")
    assert "no longer valid" in said.stderr


def test_lists_come_in_pages(person: Person) -> None:
    assert "subscriptions add" in person.types("list").stderr
    ids = [person.json("add", "--type", f"t{n}", *URL)["id"] for n in range(3)]
    first = person.types("list", "--limit", "2", "--json")
    assert [each["id"] for each in json.loads(first.stdout)] == ids[:2]
    assert f"--after {ids[1]}" in first.stderr
    rest = person.types("list", "--limit", "2", "--after", str(ids[1]), "--json")
    assert [each["id"] for each in json.loads(rest.stdout)] == ids[2:]
    assert "--after" not in rest.stderr


@pytest.mark.parametrize("columns", ["80", "120"])
def test_the_list_fits_the_terminal_and_shows_urls_whole(person: Person, columns: str) -> None:
    person.types("add", "--type", "order.*", "--url", f"https://hooks.example.com/{'z' * 150}", "--domain", "shop")
    lines = person.types("list", COLUMNS=columns).stdout.splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert "".join(lines).count("z") == 150


BAD = [
    (("add", "--type", "a b", *URL), "event_type"),
    (("add", "--type", "a", "--url", "http://example.com/"), "TIDINGS_ALLOW_HTTP_HOSTS"),
    (("add", "--type", "a", *URL, "--verification", "none"), "allow list"),
    (("add", "--type", "a", *URL, "--header", "no colon"), "Name: value"),
    (("add", "--type", "a", *URL, "--header", "X: a", "--header", "X: b"), "twice"),
    (("add", "--type", "a", *URL, "--max-in-flight", "many"), "max_in_flight"),
    (("add", "--type", "a", *URL, "--timeout-seconds", "1d"), "timeout_seconds"),
    (("add", "--type", "a", *URL, "--secret", "hunter2"), "Standard Webhooks"),
    (("edit", "1"), "nothing to change"),
    (("rotate-secret", "1", "--overlap", "soon"), "no duration"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[" ".join(words) for words, _ in BAD])
async def test_what_was_asked_wrongly_is_said_and_leaves_no_trace(
    engine: Database, person: Person, words: tuple[str, ...], says: str
) -> None:
    said = person.types(*words, exit=2)
    assert says in said.stderr
    assert "hunter2" not in said.stderr
    assert said.stdout == ""
    assert await rows(engine, "subscriptions") == await rows(engine, "audit_log") == []


async def test_an_own_server_without_keys_says_how_to_make_one(engine: Database, person: Person) -> None:
    said = person.types("add", "--type", "a", *URL, exit=1, TIDINGS_SECRET_KEYS="")
    assert "TIDINGS_SECRET_KEYS" in said.stderr
    assert "openssl rand" in said.stderr
    assert await rows(engine, "subscriptions") == []


def test_what_is_not_there_is_said(person: Person) -> None:
    for words in (("show", "7"), ("pause", "7"), ("rotate-secret", "0")):
        assert "no subscription" in person.types(*words, exit=1).stderr


def test_a_limit_before_the_word_subscriptions_is_a_setting_and_after_it_is_the_subscription_s(
    person: Person,
) -> None:
    words = ("subscriptions", "add", "--type", "a", *URL, "--timeout-seconds", "20s", "--json")
    said = run("--lease-seconds", "24s", *words, cwd=person.cwd, exit=2, env=person.environment)
    assert "from 0.1 to 18" in said.stderr
    made = json.loads(run("--timeout-seconds", "30s", *words, cwd=person.cwd, env=person.environment).stdout)
    assert made["timeout_seconds"] == 20.0


def test_a_secret_can_be_given_without_showing_it_to_the_process_list(person: Person) -> None:
    secret = "whsec_" + base64.b64encode(b"q" * 32).decode()
    bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "-m", "tidings", "subscriptions", "add", "--type", "a", *URL, "--secret", "-", "--json"],
        cwd=person.cwd,
        env={**bare, **person.environment},
        input=f"{secret}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(ended.stdout)["secret"] == secret


def test_the_embedded_database_makes_its_key_by_itself(folder: Path) -> None:
    run("migrate", cwd=folder)
    made = json.loads(run("subscriptions", "add", "--type", "a", *URL, "--json", cwd=folder).stdout)
    key = folder / "tidings-data" / "secret.key"
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    run("subscriptions", "rotate-secret", str(made["id"]), cwd=folder)
    assert key.read_bytes() == before


def test_looking_at_an_embedded_database_that_was_never_made_makes_nothing(folder: Path) -> None:
    assert "tidings migrate" in run("subscriptions", "add", "--type", "a", *URL, cwd=folder, exit=1).stderr
    assert list(folder.iterdir()) == []
