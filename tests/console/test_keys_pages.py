"""API keys in the console: made and shown once, listed without themselves, revoked after a question; for admins."""

import re
from typing import Any

from tests.api.conftest import Served
from tests.console.conftest import SignIn
from tests.support.database import Database
from tests.support.engine_words import Words

NEW = {"name": "Reporting", "scopes": ["viewer"], "days": "90"}
WRONG_KEYS: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name"),
    ({"name": "a\nb"}, "name"),
    ({"scopes": []}, "scopes"),
    ({"scopes": ["king"]}, "scopes"),
    ({"scopes": ["operator"], "domain": "eu"}, "domain"),
    ({"domain": "e*"}, "domain"),
    ({"days": "7"}, "days"),
]
KEY = re.compile(r"tid_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}")


async def keys(engine: Database) -> list[dict[str, Any]]:
    text = "SELECT public_id, name, scopes, event_domain, created_by, expires_at, revoked_at FROM api_keys ORDER BY id"
    return [dict(row) for row in await engine.sql(text, "key_admin")]


async def test_a_key_is_shown_once_and_works(engine: Database, served: Served, sign_in: SignIn) -> None:
    admin = await sign_in("admin")
    answer = await admin.post("/keys", **{**NEW, "name": "<b>Reporting</b>", "domain": "eu"})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    assert "&lt;b&gt;Reporting" in answer.text
    assert "<b>Reporting" not in answer.text
    key = KEY.findall(answer.text)[0]
    assert (await served.client(key).get("/v1/events")).status_code == 200
    stored = (await keys(engine))[-1]
    assert (stored["scopes"], stored["event_domain"]) == ("viewer", "eu")
    assert stored["created_by"].startswith("key:")
    assert stored["expires_at"] is not None
    text = await admin.text("/keys")
    assert stored["public_id"] in text
    assert key not in text
    assert "&lt;b&gt;Reporting" in text
    assert "<b>Reporting" not in text
    said = await engine.sql(f"SELECT actor, detail FROM audit_log WHERE subject = 'key:{stored['public_id']}'")
    assert [row["actor"] for row in said] == [stored["created_by"]]
    assert key not in str(said)


async def test_what_is_wrong_with_a_key_stands_beside_its_field(engine: Database, sign_in: SignIn) -> None:
    admin = await sign_in("admin")
    before = await keys(engine)
    for given, field in WRONG_KEYS:
        answer = await admin.post("/keys", **{**NEW, **given})
        assert answer.status_code == 422, given
        assert f'class="wrong" id="{field}-note"' in answer.text, given
    assert await keys(engine) == before


async def test_a_key_is_revoked_after_a_question(served: Served, sign_in: SignIn) -> None:
    admin = await sign_in("admin")
    key = await served.key("viewer")
    public_id = key.split("_")[1]
    assert f"/keys/{public_id}/revoke" in await admin.text("/keys")
    assert "It ends for ever." in await admin.text(f"/keys/{public_id}/revoke")
    assert "Revoked: test." in await admin.after(f"/keys/{public_id}/revoke")
    assert (await served.client(key).get("/v1/events")).status_code == 401
    assert "It was revoked before" in await admin.after(f"/keys/{public_id}/revoke")
    assert f"/keys/{public_id}/revoke" not in await admin.text("/keys")
    for unknown in ("nobody", "%00", "x" * 99):
        assert (await admin.get(f"/keys/{unknown}/revoke")).status_code == 404
        assert (await admin.post(f"/keys/{unknown}/revoke")).status_code == 404


async def test_who_revokes_their_own_key_is_warned_and_signed_out(served: Served, sign_in: SignIn) -> None:
    key = await served.key("admin")
    admin = await sign_in(key=key)
    path = f"/keys/{key.split('_')[1]}/revoke"
    assert "You are signed in with this key." in await admin.text(path)
    assert (await admin.post(path)).status_code == 303
    answer = await admin.get("/keys")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


async def test_keys_are_for_admins_alone(engine: Database, sign_in: SignIn) -> None:
    people = [await sign_in("viewer"), await sign_in("operator"), await sign_in("viewer", domain="eu")]
    before = await keys(engine)
    for person in people:
        assert 'href="/keys"' not in await person.text("/events")
        for path in ("/keys", f"/keys/{before[0]['public_id']}/revoke"):
            assert (await person.get(path)).status_code == 403
            assert (await person.post(path, **NEW)).status_code == 403
    assert await keys(engine) == before


async def test_many_keys_come_in_pages(engine: Database, sign_in: SignIn) -> None:
    hash = Words(engine).binary(b"\0")
    values = ", ".join(f"('own-{n}', {hash}, 'K{n}', 'viewer')" for n in range(60))
    await engine.sql(f"INSERT INTO api_keys (public_id, key_hash, name, scopes) VALUES {values}")
    admin = await sign_in("admin")
    first = await admin.text("/keys")
    (following,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = await admin.text(following)
    found = re.findall(r'<td class="mono">([^<]+)</td>', first + second)
    assert found == [key["public_id"] for key in await keys(engine)]
    assert (await admin.get("/keys?cursor=made-up")).status_code == 400
