"""Signing in with a key, and how long that lasts: a session is a hash in a table and a cookie that no script sees."""

import hashlib
import secrets

import httpx
import pytest

from tests.api.conftest import Served, serving
from tests.console.conftest import SignIn
from tests.console.visitor import Visitor
from tests.support.database import Database
from tidings.api.throttle import MOST_FAILURES
from tidings.console.forgery import token_of
from tidings.decisions.keys import PUBLIC_IDS, SECRET_BYTES, key_text
from tidings.model.key import Scope
from tidings.roles.keys import actions as keys


def cookie_of(response: httpx.Response, name: str) -> str:
    return next(line for line in response.headers.get_list("set-cookie") if line.startswith(f"{name}="))


async def is_signed_in(visitor: Visitor) -> bool:
    response = await visitor.get("/events")
    assert response.status_code in (200, 303)
    return response.status_code == 200


async def test_a_page_leads_to_signing_in_and_back_to_itself(visitor: Visitor, served: Served) -> None:
    response = await visitor.get("/events?type=order.paid")
    assert response.status_code == 303
    where = response.headers["location"]
    assert where == "/sign-in?to=%2Fevents%3Ftype%3Dorder.paid"
    assert 'value="/events?type=order.paid"' in await visitor.text(where)
    response = await visitor.post("/sign-in", key=served.keys["viewer"], to="/events?type=order.paid")
    assert response.headers["location"] == "/events?type=order.paid"


async def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(visitor: Visitor, served: Served) -> None:
    said = cookie_of(await visitor.sign_in(served.keys["viewer"]), "tidings_session")
    assert {"HttpOnly", "Path=/", "SameSite=lax"} <= {part.strip() for part in said.split(";")}
    assert "Domain" not in said


async def test_over_https_the_cookie_is_bound_to_the_host(served: Served) -> None:
    async with Visitor(served.url, **{"X-Forwarded-Proto": "https"}) as visitor:
        first = await visitor.get("/sign-in")
        visit = cookie_of(first, "__Host-tidings-visit")
        headers = {"Origin": served.url.replace("http:", "https:"), "Cookie": visit.partition(";")[0]}
        response = await visitor.post("/sign-in", headers, key=served.keys["viewer"])
        said = cookie_of(response, "__Host-tidings-session")
    assert {"Secure", "HttpOnly", "Path=/"} <= {part.strip() for part in said.split(";")}


async def test_of_a_session_only_a_hash_is_kept_and_of_the_key_nothing(visitor: Visitor, served: Served) -> None:
    await visitor.sign_in(served.keys["viewer"])
    id = visitor.client.cookies["tidings_session"]
    (row,) = await served.database.sql("SELECT * FROM console_sessions")
    assert row["session_hash"] == hashlib.sha256(b"tidings session:" + id.encode()).hexdigest()
    assert id not in str(row)
    assert served.keys["viewer"] not in str(row)


async def test_a_new_sign_in_has_a_new_id_and_ends_the_old_one(visitor: Visitor, served: Served) -> None:
    await visitor.sign_in(served.keys["viewer"])
    first = visitor.client.cookies["tidings_session"]
    token = visitor.token
    visitor.client.cookies.set("tidings_visit", visit := secrets.token_urlsafe(24), domain="127.0.0.1", path="/")
    # The form of somebody who signs in anew in the same browser.
    visitor.token = token_of(visit)
    assert (await visitor.post("/sign-in", key=served.keys["admin"])).status_code == 303
    assert visitor.client.cookies["tidings_session"] != first
    await visitor.text("/events")
    assert visitor.token not in (token, token_of(visit))
    async with Visitor(served.url) as other:
        other.client.cookies.set("tidings_session", first, domain="127.0.0.1", path="/")
        assert not await is_signed_in(other)


async def test_a_session_that_somebody_made_up_is_none(visitor: Visitor) -> None:
    for id in ("x", secrets.token_urlsafe(32), "a" * 5000):
        visitor.client.cookies.set("tidings_session", id, domain="127.0.0.1", path="/")
        assert not await is_signed_in(visitor)


async def test_signing_out_ends_the_session_not_only_the_cookie(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("viewer")
    id = visitor.client.cookies["tidings_session"]
    assert (await visitor.post("/sign-out")).headers["location"] == "/sign-in"
    visitor.client.cookies.set("tidings_session", id, domain="127.0.0.1", path="/")
    assert not await is_signed_in(visitor)
    assert await served.database.value("SELECT COUNT(*) FROM console_sessions") == 0


@pytest.mark.parametrize(("column", "minutes"), [("seen_at", 31), ("created_at", 12 * 60 + 1)])
async def test_a_session_ends_when_nobody_uses_it_and_after_half_a_day(
    sign_in: SignIn, served: Served, column: str, minutes: int
) -> None:
    visitor = await sign_in("viewer")
    await served.database.sql(f"UPDATE console_sessions SET {column} = {column} - INTERVAL '{minutes - 2}' MINUTE")
    assert await is_signed_in(visitor)
    await served.database.sql(f"UPDATE console_sessions SET {column} = {column} - INTERVAL '{minutes}' MINUTE")
    assert not await is_signed_in(visitor)


async def test_a_page_that_looks_by_itself_keeps_nobody_signed_in(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("viewer")
    await served.database.sql("UPDATE console_sessions SET seen_at = seen_at - INTERVAL '5' MINUTE")
    before = await served.database.value("SELECT seen_at FROM console_sessions")
    assert (await visitor.get("/overview/live", **{"HX-Request": "true"})).status_code == 200
    assert await served.database.value("SELECT seen_at FROM console_sessions") == before
    await visitor.text("/events")
    assert await served.database.value("SELECT seen_at FROM console_sessions") > before


async def test_a_poll_after_the_end_sends_the_browser_to_sign_in(visitor: Visitor) -> None:
    response = await visitor.get("/overview/live", **{"HX-Request": "true"})
    assert response.headers["hx-redirect"] == "/sign-in"
    assert not response.text


async def test_a_revoked_key_ends_its_sessions_at_once(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("viewer")
    public_id = await served.database.value("SELECT public_id FROM console_sessions")
    await keys.revoke(await served.database.open("key_admin"), public_id, "test")
    assert not await is_signed_in(visitor)


async def test_an_expired_key_ends_its_sessions(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("viewer")
    await served.database.sql("UPDATE api_keys SET expires_at = created_at")
    assert not await is_signed_in(visitor)


async def test_sessions_that_are_over_do_not_pile_up(sign_in: SignIn, served: Served) -> None:
    await sign_in("viewer")
    await served.database.sql("UPDATE console_sessions SET seen_at = seen_at - INTERVAL '40' MINUTE")
    await sign_in("viewer")
    assert await served.database.value("SELECT COUNT(*) FROM console_sessions") == 1


async def test_signing_in_and_out_is_in_the_audit_log(sign_in: SignIn, served: Served) -> None:
    await (await sign_in("viewer")).post("/sign-out")
    rows = await served.database.sql("SELECT action, address FROM audit_log WHERE action LIKE 'console%' ORDER BY id")
    assert [(row["action"], row["address"]) for row in rows] == [
        ("console.signed_in", "127.0.0.1"),
        ("console.signed_out", "127.0.0.1"),
    ]


async def test_what_somebody_is_refused_is_in_the_audit_log(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("viewer")
    assert (await visitor.post("/keys", name="mine", scopes="admin")).status_code == 403
    assert await served.database.value("SELECT COUNT(*) FROM audit_log WHERE action = 'request.denied'") == 1


async def test_a_key_that_may_only_publish_has_nothing_to_see(visitor: Visitor, served: Served) -> None:
    response = await visitor.sign_in(served.keys["publisher"])
    assert response.status_code == 403
    assert "may only publish" in response.text


@pytest.mark.parametrize("key", ["", "nonsense", "tid_cut", "<script>alert(1)</script>"])
async def test_what_is_wrong_with_a_key_is_said_beside_it(visitor: Visitor, key: str) -> None:
    response = await visitor.sign_in(key)
    assert response.status_code == 401
    assert 'role="alert"' in response.text
    assert "alert(1)" not in response.text


def a_key() -> str:
    """Of the right form, and nobody's."""
    return key_text(secrets.randbelow(PUBLIC_IDS), secrets.token_bytes(SECRET_BYTES))


async def test_after_twenty_wrong_keys_an_address_has_to_wait(engine: Database) -> None:
    async with serving(engine, TIDINGS_ADMIN_KEY="chosen-by-somebody") as served, Visitor(served.url) as visitor:
        await visitor.get("/sign-in")
        for _ in range(MOST_FAILURES):
            assert (await visitor.post("/sign-in", key=a_key())).status_code == 401
        assert (await visitor.post("/sign-in", key=a_key())).status_code == 429
        # One that a person chose might be guessed: it is not even looked at. One of ours can't be.
        assert (await visitor.post("/sign-in", key="chosen-by-somebody")).status_code == 429
        assert (await visitor.post("/sign-in", key=served.keys[Scope.VIEWER])).status_code == 303


async def test_after_signing_in_nobody_is_sent_to_another_site(visitor: Visitor, served: Served) -> None:
    for to in ("//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb"):
        await visitor.get("/sign-in")
        response = await visitor.post("/sign-in", key=served.keys["viewer"], to=to)
        assert response.headers["location"] == "/"
        await visitor.get("/events")
        await visitor.post("/sign-out")
