"""Subscriptions as pure configuration, through the logins of the two roles that may write them."""

import asyncio
import json
import time
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

import pytest

from tests.support.database import Database
from tidings.decisions.destinations import DestinationRules
from tidings.decisions.secret_keys import secret_text
from tidings.decisions.subscribing import SubscriptionRules
from tidings.errors import Conflict, NotFound, SecretsUnusable, StatementFailed, SubscriptionRefused
from tidings.model.subscription import subscription_from
from tidings.roles.subscriptions import actions
from tidings.roles.subscriptions.actions import Created, Outcome
from tidings.roles.verifier.actions import trust
from tidings.roles.verifier.operations import VerifierOperations
from tidings.tables import tables_of
from tidings.vault import Vault, entries, open_headers, valid_secrets

pytestmark = pytest.mark.slow

ADMIN, VERIFIER = "subscription_admin", "subscription_verifier"
RULES = SubscriptionRules(DestinationRules(http_hosts=("127.0.0.1",), networks=(ip_network("127.0.0.0/8"),)))
VAULT = Vault(["the key of the tests"])
LEAST: dict[str, Any] = {"event_type": "order.*", "callback_url": "https://example.com/hook"}
TRUSTED: dict[str, Any] = {**LEAST, "callback_url": "http://127.0.0.1:9000/hook", "verification": "none"}
SECOND = 1_000_000


async def create(engine: Database, vault: Vault = VAULT, **given: Any) -> Created:
    admin = await engine.open(ADMIN)
    return await actions.create(admin, {**LEAST, **given}, actor="test", rules=RULES, vault=vault)


async def edit(engine: Database, id: int, expected_version: int | None = None, **given: Any) -> Outcome:
    admin = await engine.open(ADMIN)
    return await actions.edit(
        admin, id, given, actor="test", rules=RULES, vault=VAULT, expected_version=expected_version
    )


async def trusted(engine: Database, id: int, rules: DestinationRules = RULES.destinations) -> bool:
    verifier = await engine.open(VERIFIER)
    return await VerifierOperations.step(verifier, lambda it: trust(it, id, actor="test", rules=rules))


async def stored(engine: Database, id: int) -> dict[str, Any]:
    (row,) = await engine.sql(f"SELECT * FROM subscriptions WHERE id = {id}")
    return dict(row)


async def audited(engine: Database) -> list[tuple[str, str, str]]:
    rows = await engine.sql("SELECT actor, action, subject FROM audit_log ORDER BY id")
    return [(row["actor"], row["action"], row["subject"]) for row in rows]


async def detail(engine: Database) -> Any:
    return json.loads(await engine.value("SELECT detail FROM audit_log ORDER BY id DESC LIMIT 1"))


async def contents(engine: Database) -> dict[str, list[dict[str, Any]]]:
    """Every row of every table."""
    tables = tables_of(engine.family)
    return {name: [dict(row) for row in await engine.sql(f"SELECT * FROM {name}")] for name in tables}


def changed_tables(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def secrets_at(column: bytes, id: int, moment: int, vault: Vault = VAULT) -> list[str]:
    return valid_secrets(vault, id, column, moment / SECOND)


# Creating


async def test_a_new_subscription_is_stored_as_it_was_asked_for_and_is_unverified(engine: Database) -> None:
    created = await create(
        engine,
        event_domain="shop",
        description="für die Buchhaltung",
        verification="echo",
        max_retry_limit=3,
        base_delay_seconds=0.5,
        timeout_seconds=7,
        max_in_flight=2,
    )
    row = await stored(engine, created.subscription.id)
    assert {name: row[name] for name in ("event_domain", "event_type", "callback_url", "verification")} == {
        "event_domain": "shop",
        "event_type": "order.*",
        "callback_url": "https://example.com/hook",
        "verification": "echo",
    }
    assert (bool(row["active"]), bool(row["verified"]), bool(row["paused"])) == (True, False, False)
    assert (row["max_retry_limit"], row["base_delay_seconds"], row["timeout_seconds"], row["max_in_flight"]) == (
        3,
        0.5,
        7.0,
        2,
    )
    assert (row["description"], row["pending_callback_url"]) == ("für die Buchhaltung", None)
    assert created.subscription == subscription_from(row)


async def test_the_canonical_url_is_what_is_stored(engine: Database) -> None:
    created = await create(engine, callback_url="HTTPS://Example.com.:443")
    assert (await stored(engine, created.subscription.id))["callback_url"] == "https://example.com/"


async def test_each_has_a_secret_of_its_own_that_opens_only_in_its_row(engine: Database) -> None:
    first, second = await create(engine), await create(engine)
    assert first.secret != second.secret
    assert first.secret.startswith("whsec_")
    column = (await stored(engine, first.subscription.id))["secrets"]
    assert secrets_at(column, first.subscription.id, 0) == [first.secret]
    with pytest.raises(SecretsUnusable, match="moved"):
        secrets_at(column, second.subscription.id, 0)


async def test_a_given_secret_is_the_one_that_is_used(engine: Database) -> None:
    given = secret_text(b"g" * 24)
    created = await create(engine, secret=given)
    assert created.secret == given
    assert secrets_at((await stored(engine, created.subscription.id))["secrets"], created.subscription.id, 0) == [given]


async def test_headers_are_sealed_for_their_row(engine: Database) -> None:
    id = (await create(engine, headers={"X-Api-Key": "hunter2"})).subscription.id
    assert open_headers(VAULT, id, (await stored(engine, id))["headers"]) == {"x-api-key": "hunter2"}


async def test_no_secret_stands_in_the_database_in_clear(engine: Database) -> None:
    """Not in any column of any table, as text, as bytes, or as what the text stands for."""
    created = await create(engine, headers={"X-Api-Key": "hunter2-hunter2"}, secret=secret_text(b"0123456789" * 3))
    id = created.subscription.id
    rotated = await actions.rotate_secret(await engine.open(ADMIN), id, actor="test", vault=VAULT)
    await edit(engine, id, headers={"X-Api-Key": "hunter3-hunter3"})
    everything = [
        value if isinstance(value, bytes) else str(value).encode()
        for rows in (await contents(engine)).values()
        for row in rows
        for value in row.values()
    ]
    assert len(everything) > 40
    for hidden in (created.secret, rotated, "0123456789" * 3, "hunter2", "hunter3"):
        assert not [value for value in everything if hidden.encode() in value]
        assert not [value for value in everything if hidden.removeprefix("whsec_").encode() in value]


async def test_without_a_key_nothing_is_created(engine: Database) -> None:
    before = await contents(engine)
    with pytest.raises(SecretsUnusable, match="TIDINGS_SECRET_KEYS"):
        await create(engine, vault=Vault([]))
    assert await contents(engine) == before


async def test_creating_and_editing_write_configuration_and_nothing_else(engine: Database) -> None:
    """Every row of every table is compared."""
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}')")
    written = {"subscriptions", "audit_log", "config_version"}
    admin = await engine.open(ADMIN)
    before = await contents(engine)
    id = (await create(engine, headers={"x": "y"})).subscription.id
    for act in (
        lambda: edit(engine, id, event_type="order.paid", callback_url="https://example.com/b", headers={"x": "z"}),
        lambda: actions.pause(admin, id, actor="test"),
        lambda: actions.resume(admin, id, actor="test"),
        lambda: actions.deactivate(admin, id, actor="test"),
        lambda: actions.activate(admin, id, actor="test"),
        lambda: actions.rotate_secret(admin, id, actor="test", vault=VAULT),
    ):
        after = await contents(engine)
        assert changed_tables(before, after) == written
        assert len(after["subscriptions"]) == 1
        before = after
        await act()
    assert changed_tables(before, await contents(engine)) == written


BAD: list[dict[str, Any]] = [
    {"event_type": "a b"},
    {"callback_url": "http://example.com/"},
    {"callback_url": "https://169.254.169.254/"},
    {"verification": "none"},
    {"timeout_seconds": 10_000},
    {"headers": {"Host": "x"}},
    {"verified": True},
    {"description": "\x00"},
]


@pytest.mark.parametrize("bad", BAD, ids=str)
async def test_bad_input_leaves_no_trace(engine: Database, bad: dict[str, Any]) -> None:
    id = (await create(engine)).subscription.id
    before = await contents(engine)
    with pytest.raises(SubscriptionRefused):
        await create(engine, **bad)
    with pytest.raises(SubscriptionRefused):
        await edit(engine, id, **{"paused": True, **bad})
    assert await contents(engine) == before


async def test_every_change_is_audited_with_who_did_what_to_which(engine: Database) -> None:
    created = await create(engine, headers={"x": "hidden-value"}, max_retry_limit=3)
    id, admin = created.subscription.id, await engine.open(ADMIN)
    assert await detail(engine) == {
        "event_domain": "default",
        "event_type": "order.*",
        "callback_url": "https://example.com/hook",
        "verification": "proof",
        "description": "",
        "max_retry_limit": 3,
        "headers": "given",
    }
    await edit(engine, id, max_retry_limit=None, headers={})
    assert await detail(engine) == {"max_retry_limit": {"from": 3, "to": None}, "headers": "removed"}
    for act in (actions.pause, actions.resume, actions.deactivate, actions.activate):
        await act(admin, id, actor="somebody")
    await actions.rotate_secret(admin, id, actor="somebody", vault=VAULT, overlap_seconds=60)
    assert await detail(engine) == {"overlap_seconds": 60}
    assert await audited(engine) == [
        *[("test", f"subscription.{what}", f"subscription:{id}") for what in ("created", "edited")],
        *[("somebody", f"subscription.{what}", f"subscription:{id}") for what in ("paused", "resumed")],
        *[("somebody", f"subscription.{what}", f"subscription:{id}") for what in ("deactivated", "activated")],
        ("somebody", "subscription.secret_rotated", f"subscription:{id}"),
    ]


# Editing


async def test_an_edit_changes_what_is_given_and_leaves_the_rest(engine: Database) -> None:
    id = (await create(engine, max_retry_limit=3, headers={"x": "y"}, description="old")).subscription.id
    before = await stored(engine, id)
    outcome = await edit(engine, id, description="new", max_retry_limit=None)
    after = await stored(engine, id)
    assert outcome.changed
    assert outcome.subscription == subscription_from(after)
    differs = {name for name in before if before[name] != after[name]}
    assert differs == {"description", "max_retry_limit", "config_version", "updated_at"}
    assert (after["description"], after["max_retry_limit"]) == ("new", None)
    assert after["config_version"] == before["config_version"] + 1
    assert after["updated_at"] > before["updated_at"]


async def test_an_edit_that_changes_nothing_writes_nothing(engine: Database) -> None:
    id = (await create(engine)).subscription.id
    before = await contents(engine)
    outcome = await edit(engine, id, **LEAST)
    assert not outcome.changed
    assert await contents(engine) == before


async def test_a_new_url_waits_while_the_old_one_stays_in_force(engine: Database) -> None:
    id = (await create(engine)).subscription.id
    await engine.sql(f"UPDATE subscriptions SET verified = TRUE WHERE id = {id}")
    await edit(engine, id, callback_url="https://example.com/new")
    row = await stored(engine, id)
    assert (row["callback_url"], row["pending_callback_url"]) == (LEAST["callback_url"], "https://example.com/new")
    assert row["verified"]
    await edit(engine, id, callback_url="https://EXAMPLE.com/hook")
    assert (await stored(engine, id))["pending_callback_url"] is None


async def test_headers_are_replaced_as_a_whole_and_can_be_removed(engine: Database) -> None:
    id = (await create(engine, headers={"a": "1", "b": "2"})).subscription.id
    await edit(engine, id, headers={"c": "3"})
    assert open_headers(VAULT, id, (await stored(engine, id))["headers"]) == {"c": "3"}
    await edit(engine, id, headers={})
    assert (await stored(engine, id))["headers"] is None


async def test_of_two_edits_from_the_same_version_one_wins_and_the_other_is_told(engine: Database) -> None:
    created = await create(engine)
    id, version = created.subscription.id, created.subscription.config_version
    results = await asyncio.gather(
        *(edit(engine, id, version, description=f"by {who}") for who in range(8)), return_exceptions=True
    )
    (winner,) = [result for result in results if isinstance(result, Outcome)]
    conflicts = [result for result in results if isinstance(result, Conflict)]
    assert len(conflicts) == 7
    assert "look at it again" in conflicts[0].remedy
    row = await stored(engine, id)
    assert (row["description"], row["config_version"]) == (winner.subscription.description, version + 1)
    assert len(await audited(engine)) == 2


async def test_edits_of_different_fields_at_once_are_all_kept(engine: Database) -> None:
    id = (await create(engine)).subscription.id
    await asyncio.gather(
        edit(engine, id, description="new"),
        edit(engine, id, max_retry_limit=3),
        edit(engine, id, event_domain="shop"),
        edit(engine, id, callback_url="https://example.com/new"),
    )
    row = await stored(engine, id)
    assert (row["description"], row["max_retry_limit"], row["event_domain"]) == ("new", 3, "shop")
    assert row["pending_callback_url"] == "https://example.com/new"


@pytest.mark.parametrize("id", [0, -1, 4711, 2**63, 10**30])
async def test_what_is_not_there_can_not_be_changed(engine: Database, id: int) -> None:
    admin = await engine.open(ADMIN)
    for act in (
        lambda: edit(engine, id, description="x"),
        lambda: actions.pause(admin, id, actor="test"),
        lambda: actions.rotate_secret(admin, id, actor="test", vault=VAULT),
    ):
        with pytest.raises(NotFound, match=f"no subscription {id}"):
            await act()
    assert await audited(engine) == []


# Holding and switching


@pytest.mark.parametrize(
    ("do", "undo", "column", "value"),
    [
        (actions.pause, actions.resume, "paused", True),
        (actions.deactivate, actions.activate, "active", False),
    ],
)
async def test_a_switch_is_idempotent_and_says_whether_it_had_to_move(
    engine: Database, do: Any, undo: Any, column: str, value: bool
) -> None:
    id, admin = (await create(engine)).subscription.id, await engine.open(ADMIN)
    first = await do(admin, id, actor="test")
    assert (first.changed, getattr(first.subscription, column)) == (True, value)
    before = await contents(engine)
    assert not (await do(admin, id, actor="test")).changed
    assert await contents(engine) == before
    assert (await undo(admin, id, actor="test")).changed
    assert bool((await stored(engine, id))[column]) is not value


# Rotating


async def test_two_rotations_with_overlap_keep_the_older_secrets_valid_as_long_as_asked(engine: Database) -> None:
    created = await create(engine)
    id, admin = created.subscription.id, await engine.open(ADMIN)
    second = await actions.rotate_secret(admin, id, actor="test", vault=VAULT, overlap_seconds=1000)
    third = await actions.rotate_secret(admin, id, actor="test", vault=VAULT, overlap_seconds=100)
    column = (await stored(engine, id))["secrets"]
    newest, middle, oldest = entries(column)
    assert newest.created_at >= middle.created_at >= oldest.created_at
    assert secrets_at(column, id, newest.created_at) == [third, second, created.secret]
    assert secrets_at(column, id, newest.created_at + 100 * SECOND - 1) == [third, second, created.secret]
    assert secrets_at(column, id, newest.created_at + 100 * SECOND) == [third]


async def test_an_overlap_of_zero_ends_the_older_secrets_now(engine: Database) -> None:
    id, admin = (await create(engine)).subscription.id, await engine.open(ADMIN)
    second = await actions.rotate_secret(admin, id, actor="test", vault=VAULT, overlap_seconds=0)
    column = (await stored(engine, id))["secrets"]
    assert secrets_at(column, id, entries(column)[0].created_at) == [second]


async def test_the_moment_of_a_rotation_is_that_of_the_database(
    engine: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 600)
    id = (await create(engine)).subscription.id
    row = await stored(engine, id)
    (entry,) = entries(row["secrets"])
    assert abs(entry.created_at / SECOND - row["created_at"].timestamp()) < 10


async def test_after_a_hundred_rotations_the_newest_ones_are_whole_and_the_rest_is_gone(engine: Database) -> None:
    id, admin = (await create(engine)).subscription.id, await engine.open(ADMIN)
    made = [await actions.rotate_secret(admin, id, actor="test", vault=VAULT) for _ in range(100)]
    column = (await stored(engine, id))["secrets"]
    kept = secrets_at(column, id, 0)
    assert len(column) <= 8192
    assert 40 < len(kept) < 100
    assert kept == made[::-1][: len(kept)]


async def test_rotations_at_once_are_all_kept(engine: Database) -> None:
    created = await create(engine)
    admins = [await engine.open(ADMIN) for _ in range(5)]
    id = created.subscription.id
    made = await asyncio.gather(*(actions.rotate_secret(one, id, actor="test", vault=VAULT) for one in admins))
    assert set(secrets_at((await stored(engine, id))["secrets"], id, 0)) == {created.secret, *made}


async def test_the_ring_can_be_rotated_under_the_secrets(engine: Database) -> None:
    created = await create(engine, vault=Vault(["old"]))
    id, admin, newer = created.subscription.id, await engine.open(ADMIN), Vault(["new", "old"])
    second = await actions.rotate_secret(admin, id, actor="test", vault=newer)
    column = (await stored(engine, id))["secrets"]
    assert secrets_at(column, id, 0, newer) == [second, created.secret]
    with pytest.raises(SecretsUnusable, match="not in the key ring"):
        secrets_at(column, id, 0, Vault(["new"]))


@pytest.mark.parametrize("role", [ADMIN, "observer", "event_router"])
@pytest.mark.parametrize("column", ["secrets", "headers"])
async def test_who_is_no_sender_reads_neither_secrets_nor_headers(engine: Database, role: str, column: str) -> None:
    await create(engine)
    with pytest.raises(StatementFailed, match="denied"):
        await engine.sql(f"SELECT {column} FROM subscriptions", role=role)


# Trust


async def test_trust_puts_the_url_in_force_and_is_audited(engine: Database) -> None:
    id = (await create(engine, **TRUSTED)).subscription.id
    before = await stored(engine, id)
    assert not before["verified"]
    assert await trusted(engine, id)
    after = await stored(engine, id)
    assert {name for name in before if before[name] != after[name]} == {"verified", "config_version", "updated_at"}
    assert (await audited(engine))[-1] == ("test", "subscription.trusted", f"subscription:{id}")
    assert await detail(engine) == {"callback_url": TRUSTED["callback_url"]}


async def test_trust_twice_writes_once(engine: Database) -> None:
    id = (await create(engine, **TRUSTED)).subscription.id
    assert await trusted(engine, id)
    before = await contents(engine)
    assert not await trusted(engine, id)
    assert await contents(engine) == before


async def test_trust_moves_the_waiting_url_into_force(engine: Database) -> None:
    id = (await create(engine, **TRUSTED)).subscription.id
    await trusted(engine, id)
    await edit(engine, id, callback_url="http://127.0.0.1:9001/new")
    assert (await stored(engine, id))["callback_url"] == TRUSTED["callback_url"]
    assert await trusted(engine, id)
    row = await stored(engine, id)
    assert (row["callback_url"], row["pending_callback_url"]) == ("http://127.0.0.1:9001/new", None)


@pytest.mark.parametrize("verification", ["proof", "echo"])
async def test_what_is_to_be_verified_by_a_call_is_not_trusted(engine: Database, verification: str) -> None:
    id = (await create(engine, **{**TRUSTED, "verification": verification})).subscription.id
    before = await contents(engine)
    with pytest.raises(SubscriptionRefused, match="by a call"):
        await trusted(engine, id)
    assert await contents(engine) == before


async def test_the_verifier_asks_the_allow_lists_itself(engine: Database) -> None:
    """Whoever may write subscriptions, past all checks of ours, can't make an endpoint trusted that nobody listed."""
    id = (await create(engine, **TRUSTED)).subscription.id
    await engine.sql(
        f"UPDATE subscriptions SET pending_callback_url = 'https://evil.example/' WHERE id = {id}", role=ADMIN
    )
    before = await contents(engine)
    with pytest.raises(SubscriptionRefused, match="on no allow list"):
        await trusted(engine, id)
    assert await contents(engine) == before


async def test_a_new_url_without_verification_must_be_on_the_allow_lists_too(engine: Database) -> None:
    id = (await create(engine, **TRUSTED)).subscription.id
    with pytest.raises(SubscriptionRefused, match="allow list"):
        await edit(engine, id, callback_url="https://example.com/")


@pytest.mark.parametrize("verb", ["INSERT", "UPDATE"])
async def test_the_admin_can_not_call_anything_verified(engine: Database, verb: str) -> None:
    """The HTTP API lets nobody; the database refuses it too."""
    await create(engine)
    text = {
        "INSERT": "INSERT INTO subscriptions (event_type, callback_url, verified) VALUES ('a', 'https://a.b/', TRUE)",
        "UPDATE": "UPDATE subscriptions SET verified = TRUE",
    }[verb]
    with pytest.raises(StatementFailed, match="denied"):
        await engine.sql(text, role=ADMIN)


async def test_trust_and_an_edit_at_once_never_put_a_replaced_url_in_force_as_the_latest(engine: Database) -> None:
    id = (await create(engine, **TRUSTED)).subscription.id
    urls = [f"http://127.0.0.1:{port}/" for port in range(9001, 9007)]
    work = [edit(engine, id, callback_url=url) for url in urls] + [trusted(engine, id) for _ in urls]
    await asyncio.gather(*work)
    await trusted(engine, id)
    row = await stored(engine, id)
    changes = await engine.sql("SELECT action, detail FROM audit_log ORDER BY id")
    edits = [json.loads(row["detail"]) for row in changes if row["action"] == "subscription.edited"]
    last = [edit["pending_callback_url"]["to"] for edit in edits if "pending_callback_url" in edit][-1]
    assert row["pending_callback_url"] is None
    assert row["callback_url"] == last
