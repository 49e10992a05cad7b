"""Keys in the database: made, checked, used, revoked, expired; each by its own role."""

import asyncio
import json

import pytest

from tests.support.database import Database
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.decisions.keys import check_new_key, public_id_of
from tidings.errors import InputRefused, NotFound, StatementFailed
from tidings.model.key import Caller, Scope
from tidings.roles.key_checker import checking
from tidings.roles.key_checker.checking import KeyChecker
from tidings.roles.keys import actions

VIEWER = check_new_key("a viewer", ["viewer"])


@pytest.fixture
async def admin(engine: Database) -> Engine:
    return await engine.open("key_admin")


@pytest.fixture
async def checker(engine: Database) -> KeyChecker:
    opened = await engine.open("key_checker")

    async def give() -> Engine:
        return opened

    return KeyChecker(give)


async def test_a_key_that_was_made_is_known_and_no_other(admin: Engine, checker: KeyChecker) -> None:
    made = await actions.add(admin, check_new_key("shop", ["publisher", "viewer"], "shop"), "me")
    scopes = frozenset({Scope.PUBLISHER, Scope.VIEWER})
    assert await checker.caller(made.key) == Caller(public_id_of(made.key), scopes, "shop")
    last = "A" if made.key[30] != "A" else "B"
    forged = made.key[:30] + last + made.key[31:]
    for wrong in (forged, made.key[:-1], made.key.lower(), "", "x" * 600, "é", public_id_of(made.key)):
        assert await checker.caller(wrong) is None


async def test_nothing_of_the_key_itself_is_stored(admin: Engine, engine: Database) -> None:
    made = await actions.add(admin, VIEWER, "me")
    (row,) = await engine.sql("SELECT * FROM api_keys")
    secret = made.key.split("_")[2]
    assert all(secret not in str(value) for value in row.values())
    assert len(bytes(row["key_hash"])) == 32


async def test_making_and_revoking_are_audited_once(admin: Engine, engine: Database) -> None:
    made = await actions.add(admin, VIEWER, "me")
    id = made.stored.public_id
    await actions.revoke(admin, id, "you")
    await actions.revoke(admin, id, "them")
    rows = await engine.sql("SELECT actor, action, subject, detail FROM audit_log ORDER BY id", "observer")
    assert [(row["actor"], row["action"], row["subject"]) for row in rows] == [
        ("me", "key.created", f"key:{id}"),
        ("you", "key.revoked", f"key:{id}"),
    ]
    assert made.key not in str([dict(row) for row in rows])
    assert json.loads(rows[0]["detail"])["scopes"] == "viewer"


async def test_a_revoked_key_is_let_in_no_longer_than_five_seconds(
    admin: Engine, checker: KeyChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is that of the memory of a checker; the test shortens it."""
    assert checking.SECONDS_REMEMBERED <= 5
    monkeypatch.setattr(checking, "SECONDS_REMEMBERED", 0.1)
    made = await actions.add(admin, VIEWER, "me")
    assert await checker.caller(made.key)
    stored, was_valid = await actions.revoke(admin, made.stored.public_id, "me")
    assert was_valid
    assert not stored.is_valid

    async def is_refused() -> bool:
        return await checker.caller(made.key) is None

    await eventually(is_refused, what="the key to be refused")


async def test_an_expired_key_is_not_known(admin: Engine, checker: KeyChecker, engine: Database) -> None:
    made = await actions.add(admin, check_new_key("short", ["viewer"], None, 3600.0), "me")
    assert made.stored.expires_at is not None
    await engine.sql("UPDATE api_keys SET expires_at = created_at", "key_admin")
    assert await checker.caller(made.key) is None
    (listed,) = await actions.listed(admin, 10)
    assert not listed.is_valid


async def test_the_last_use_is_written_at_most_once_a_minute(
    admin: Engine, checker: KeyChecker, engine: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "SECONDS_REMEMBERED", 0.0)
    made = await actions.add(admin, VIEWER, "me")
    assert made.stored.last_used_at is None
    used = []
    for _ in range(3):
        await checker.caller(made.key)
        used.append(await engine.value("SELECT last_used_at FROM api_keys", "observer"))
    assert used[0] is not None
    assert used[0] == used[1] == used[2]


async def test_the_first_admin_key_is_made_once_however_often_it_is_asked_for(admin: Engine) -> None:
    made = await actions.add_first(admin, "up")
    assert made is not None
    assert made.stored.scopes == {Scope.ADMIN}
    assert await actions.add_first(admin, "up") is None


async def test_a_key_of_the_operators_own_may_be_any_text_and_stays_revoked(
    admin: Engine, checker: KeyChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checking, "SECONDS_REMEMBERED", 0.0)
    assert await actions.ensure(admin, "tid_let-me-in", "env")
    assert not await actions.ensure(admin, "tid_let-me-in", "env")
    caller = await checker.caller("tid_let-me-in")
    assert caller is not None
    assert caller.may(Scope.ADMIN)
    await actions.revoke(admin, caller.public_id, "me")
    assert not await actions.ensure(admin, "tid_let-me-in", "env")
    assert await checker.caller("tid_let-me-in") is None


async def test_keys_that_are_not_there_can_not_be_revoked(admin: Engine) -> None:
    with pytest.raises(NotFound):
        await actions.revoke(admin, "nobody", "me")


async def test_a_key_of_the_operators_own_is_not_empty(admin: Engine) -> None:
    with pytest.raises(InputRefused):
        await actions.ensure(admin, "", "me")


async def test_the_admin_can_not_read_hashes_and_the_checker_can_not_make_keys(engine: Database) -> None:
    with pytest.raises(StatementFailed, match="denied"):
        await engine.sql("SELECT key_hash FROM api_keys", "key_admin")
    with pytest.raises(StatementFailed, match="denied"):
        await engine.sql("INSERT INTO api_keys (public_id, key_hash, scopes) VALUES ('a', 'b', 'admin')", "key_checker")


async def test_many_at_once_are_all_told_right(admin: Engine, checker: KeyChecker) -> None:
    made = [await actions.add(admin, VIEWER, "me") for _ in range(3)]
    keys = [one.key for one in made] * 10 + ["wrong"] * 10
    callers = await asyncio.gather(*(checker.caller(key) for key in keys))
    assert [caller.public_id if caller else None for caller in callers] == [
        one.stored.public_id for one in made
    ] * 10 + [None] * 10
