"""Subscriptions in the console: how they fare, and everything that can be done to one."""

import datetime
import html
import re
from typing import Any

import pytest

from tests.console.conftest import SignIn
from tests.console.deliveries import HOSTILE, QUOTED, Deliveries, ago
from tests.console.test_rights import FORM, OPEN
from tests.support.database import Database
from tidings.roles.observer import missed as missed_module
from tidings.roles.observer.health import COUNTED_TO, Backlog, Tally
from tidings.roles.observer.why import why

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{40,}")
NEW = {
    "event_type": "order.*",
    "callback_url": "https://shop.example/in",
    "event_domain": "default",
    "description": "Invoices",
    "verification": "proof",
}


def rows(text: str) -> list[str]:
    return [html.unescape(re.sub(r"<[^>]+>", " ", row)) for row in text.split("<tr>")[2:]]


async def one(engine: Database, id: int = 1) -> dict[str, Any]:
    (row,) = await engine.sql(f"SELECT * FROM subscriptions WHERE id = {id}")
    return dict(row)


async def audited(engine: Database) -> list[tuple[str, str]]:
    found = await engine.sql("SELECT action, detail FROM audit_log WHERE subject = 'subscription:1' ORDER BY id")
    return [(row["action"], row["detail"]) for row in found]


@pytest.fixture
async def world(engine: Database) -> Deliveries:
    return await Deliveries.of(engine)


# --- looking ---------------------------------------------------------------------------------------------------------


async def test_the_list_shows_how_each_fares(world: Deliveries, sign_in: SignIn) -> None:
    hour = datetime.datetime.now(datetime.UTC).replace(minute=0, second=0, microsecond=0)
    for slot in (0, 1):
        await world.sql(
            "INSERT INTO delivery_totals (subscription_id, place, slot, began_at, delivered, failed, dead,"
            " within_100ms, within_300ms, within_1s, slower)"
            f" VALUES (1, 1, {slot}, '{hour:%Y-%m-%d %H:%M}', 45, 5, 1, 40, 6, 2, 2)"
        )
    await world.sql(
        "INSERT INTO delivery_lanes (subscription_id, window_size, failures, last_error_code)"
        " VALUES (2, 7, 5, 'timeout')"
    )
    await world.publish(3)
    await world.route()
    await world.sql("UPDATE subscriptions SET paused = true WHERE id = 2")
    good, bad = rows(await (await sign_in("viewer")).text("/subscriptions"))
    assert "90.0 %" in good
    assert "≤ 1 s" in good
    assert "Verified" in good
    assert "Paused" in bad
    assert "5 failed in a row" in bad
    assert re.search(r"\b7\b", bad)
    assert all(re.search(r"\b3\b", row) for row in (good, bad)), "so many wait"


async def test_a_backlog_is_counted_so_far_and_no_further(world: Deliveries, sign_in: SignIn) -> None:
    await world.events(COUNTED_TO + 20)
    await world.sql(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)"
        " SELECT id, 1, correlation_id FROM events"
    )
    viewer = await sign_in("viewer")
    assert f"{COUNTED_TO}+" in rows(await viewer.text("/subscriptions"))[0]
    assert f"{COUNTED_TO + 20}" in await viewer.text("/subscriptions/1")


def test_p95_is_the_bound_that_95_of_100_kept() -> None:
    assert Tally().p95 is None
    assert Tally().success is None
    assert Tally(durations={"within_100ms": 95, "slower": 5}).p95 == 100
    assert Tally(durations={"within_100ms": 94, "within_3s": 2, "slower": 4}).p95 == 3000
    assert Tally(durations={"slower": 1}).p95 == float("inf")
    assert Tally(delivered=3, failed=1).success == 0.75
    assert Backlog(pending=3, retrying=4).waiting == 7


async def test_one_page_shows_its_attempts_calls_and_deeds(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(2)
    operator = await sign_in("operator")
    text = await operator.after("/subscriptions/2/pause", reason="the shop is closed")
    assert "It is paused." in text
    assert text.count("http_503") >= 2
    assert "123 ms" in text
    assert "subscription.paused" in text
    assert "the shop is closed" in text
    assert "Paused" in text


async def test_a_long_list_comes_in_pages(world: Deliveries, sign_in: SignIn) -> None:
    values = ", ".join(f"('t{n}', 'https://n{n}.example/')" for n in range(60))
    await world.sql(f"INSERT INTO subscriptions (event_type, callback_url) VALUES {values}")
    viewer, path, found = await sign_in("viewer"), "/subscriptions", []
    while path:
        text = await viewer.text(path)
        found += re.findall(r'<td><a href="/subscriptions/(\d+)"', text)
        following = re.findall(r'rel="next" href="([^"]+)"', text)
        path = html.unescape(following[0]) if following else ""
    assert [int(id) for id in found] == [*range(1, 63)]


async def test_they_are_found_by_type_and_state(world: Deliveries, sign_in: SignIn) -> None:
    await world.sql("UPDATE subscriptions SET paused = true WHERE id = 2")
    await world.sql("INSERT INTO subscriptions (event_type, callback_url) VALUES ('a.b', 'https://n.example/')")
    viewer = await sign_in("viewer")

    async def found(query: str) -> list[str]:
        return re.findall(r'<td><a href="/subscriptions/(\d+)"', await viewer.text(f"/subscriptions?{query}"))

    assert await found("state=active") == ["1"]
    assert await found("state=paused") == ["2"]
    assert await found("state=unverified") == ["3"]
    assert await found("state=inactive") == []
    assert await found("type=a.b") == ["3"]
    assert await found("state=nonsense") == ["1", "2", "3"]
    assert "No subscription fits" in await viewer.text("/subscriptions?type=none")


async def test_no_subscription_yet_says_what_to_do(sign_in: SignIn) -> None:
    assert 'href="/subscriptions/new"' in await (await sign_in()).text("/subscriptions")
    assert 'href="/subscriptions/new"' not in await (await sign_in("operator")).text("/subscriptions")


async def test_a_viewer_sees_no_buttons_and_is_refused(world: Deliveries, engine: Database, sign_in: SignIn) -> None:
    viewer = await sign_in("viewer")
    assert set(FORM.findall(await viewer.text("/subscriptions/1"))) <= OPEN
    for deed in ("pause", "resume", "verify", "test", "replay", "edit", "rotate-secret", "deactivate"):
        assert (await viewer.post(f"/subscriptions/1/{deed}")).status_code == 403, deed
    assert (await viewer.post("/subscriptions", **NEW)).status_code == 403
    operator = await sign_in("operator")
    text = await operator.text("/subscriptions/1")
    assert 'action="/subscriptions/1/pause"' in text
    assert 'action="/subscriptions/1/rotate-secret"' not in text
    assert (await operator.post("/subscriptions/1/rotate-secret")).status_code == 403
    assert await audited(engine) == []


async def test_a_key_of_one_domain_sees_its_own_only(world: Deliveries, sign_in: SignIn) -> None:
    await world.sql("UPDATE subscriptions SET event_domain = 'shop' WHERE id = 2")
    shop = await sign_in("viewer", domain="shop")
    text = await shop.text("/subscriptions")
    assert re.findall(r'<td><a href="/subscriptions/(\d+)"', text) == ["2"]
    assert set(FORM.findall(await shop.text("/subscriptions/2"))) <= OPEN
    assert (await shop.get("/subscriptions/1")).status_code == 404
    assert (await shop.post("/subscriptions/2/pause")).status_code == 403


# --- making and changing ---------------------------------------------------------------------------------------------


async def test_a_new_one_shows_its_secret_once(engine: Database, sign_in: SignIn) -> None:
    admin = await sign_in()
    await admin.text("/subscriptions/new")
    response = await admin.post("/subscriptions", **NEW, max_retry_limit="5")
    assert response.status_code == 201
    (secret,) = set(SECRET.findall(html.unescape(response.text)))
    assert response.headers["cache-control"] == "no-store"
    stored = await one(engine)
    assert (stored["event_type"], stored["callback_url"], stored["max_retry_limit"]) == (
        "order.*",
        "https://shop.example/in",
        5,
    )
    assert not stored["verified"]
    text = await admin.text("/subscriptions/1")
    assert secret not in text
    assert "Invoices" in text
    assert [action for action, _ in await audited(engine)] == ["subscription.created"]


async def test_what_is_wrong_is_told_at_each_field_and_what_was_typed_is_kept(
    engine: Database, sign_in: SignIn
) -> None:
    admin = await sign_in()
    await admin.text("/subscriptions/new")
    typed = {
        "event_type": "order.*.paid",
        "callback_url": "http://shop.example/",
        "event_domain": "a b",
        "description": "kept as it was",
        "max_retry_limit": "many",
        "timeout_seconds": "9999",
        "headers": "no colon",
        "secret": "short",
        "verification": "proof",
    }
    response = await admin.post("/subscriptions", **typed)
    assert response.status_code == 422
    wrong = set(re.findall(r'class="wrong" id="([a-z_]+)-note"', response.text))
    assert wrong == {
        "event_type",
        "callback_url",
        "event_domain",
        "max_retry_limit",
        "timeout_seconds",
        "headers",
        "secret",
    }
    for kept in ("order.*.paid", "http://shop.example/", "a b", "kept as it was", "many", "no colon"):
        assert kept in response.text
    assert "short" not in response.text
    assert await engine.value("SELECT COUNT(*) FROM subscriptions") == 0


async def test_an_edit_changes_what_differs_and_keeps_headers(
    world: Deliveries, engine: Database, sign_in: SignIn
) -> None:
    admin = await sign_in()
    form = await admin.text("/subscriptions/1/edit")
    (version,) = re.findall(r'name="version" value="(\d+)"', form)
    typed = {**NEW, "callback_url": "https://good.example/", "headers_choice": "replace", "headers": "X-Key: geheim"}
    assert (await admin.post("/subscriptions/1/edit", **typed, version=version)).status_code == 303
    assert "was changed" in await admin.text("/subscriptions/1")
    stored = await one(engine)
    assert (stored["event_type"], stored["description"]) == ("order.*", "Invoices")
    assert stored["headers"]
    version = str(stored["config_version"])
    await admin.post("/subscriptions/1/edit", **{**typed, "headers_choice": "keep"}, version=version)
    assert (await one(engine))["headers"]
    assert "geheim" not in await admin.text("/subscriptions/1/edit")
    version = str((await one(engine))["config_version"])
    await admin.post("/subscriptions/1/edit", **{**typed, "headers_choice": "remove"}, version=version)
    assert (await one(engine))["headers"] is None


async def test_a_changed_url_waits_until_it_is_verified(world: Deliveries, engine: Database, sign_in: SignIn) -> None:
    admin = await sign_in()
    version = str((await one(engine))["config_version"])
    typed = {**NEW, "callback_url": "https://new.example/"}
    text = await admin.after("/subscriptions/1/edit", **typed, version=version)
    assert "New URL waits" in text
    assert "https://good.example/" in text
    assert "https://new.example/" in text


async def test_an_edit_of_what_somebody_else_changed_meanwhile_changes_nothing(
    world: Deliveries, engine: Database, sign_in: SignIn
) -> None:
    first, second = await sign_in(), await sign_in()
    version = str((await one(engine))["config_version"])
    typed = {**NEW, "callback_url": "https://good.example/"}
    await first.after("/subscriptions/1/edit", **{**typed, "description": "theirs"}, version=version)
    await second.text("/subscriptions/1/edit")
    response = await second.post("/subscriptions/1/edit", **{**typed, "description": "mine"}, version=version)
    assert response.status_code == 409
    assert "Somebody changed this subscription meanwhile" in response.text
    assert 'value="mine"' in response.text
    assert "<code>theirs</code>" in response.text
    assert (await one(engine))["description"] == "theirs"
    (shown,) = re.findall(r'name="version" value="(\d+)"', response.text)
    await second.after("/subscriptions/1/edit", **{**typed, "description": "mine"}, version=shown)
    assert (await one(engine))["description"] == "mine"
    # Without a version nothing is changed at all.
    assert (await second.post("/subscriptions/1/edit", **typed)).status_code == 409


async def test_a_rotated_secret_is_shown_once(world: Deliveries, engine: Database, sign_in: SignIn) -> None:
    admin = await sign_in()
    response = await admin.post("/subscriptions/1/rotate-secret", overlap="3600")
    assert response.status_code == 200
    (secret,) = set(SECRET.findall(html.unescape(response.text)))
    assert secret not in await admin.text("/subscriptions/1")
    ((action, detail),) = await audited(engine)
    assert action == "subscription.secret_rotated"
    assert "3600" in detail
    await admin.post("/subscriptions/1/rotate-secret", overlap="nonsense")
    assert "86400" in (await audited(engine))[-1][1]


# --- acting ----------------------------------------------------------------------------------------------------------


async def test_the_endpoint_is_asked_and_what_came_of_it_is_shown(engine: Database, sign_in: SignIn) -> None:
    await engine.sql("INSERT INTO subscriptions (event_type, callback_url) VALUES ('*', 'https://a.example/')")
    operator = await sign_in("operator")
    refused = await operator.after("/subscriptions/1/test")
    assert "so nothing is sent to it" in refused
    assert "On its way" in await operator.after("/subscriptions/1/verify")
    await engine.sql("UPDATE endpoint_checks SET outcome = 'timeout', finished_at = created_at")
    assert "Timed out" in await operator.text("/subscriptions/1/live")
    await engine.sql("UPDATE subscriptions SET verified = true")
    assert "nothing to ask" in await operator.after("/subscriptions/1/verify")
    assert "A test event is on its way" in await operator.after("/subscriptions/1/test")
    assert await engine.value("SELECT COUNT(*) FROM sys_pending_tasks WHERE biz_type LIKE 'subscription.%'") == 2


async def test_too_many_calls_are_refused_in_words(engine: Database, sign_in: SignIn) -> None:
    await engine.sql("INSERT INTO subscriptions (event_type, callback_url) VALUES ('*', 'https://a.example/')")
    operator = await sign_in("operator")
    for _ in range(5):
        await operator.after("/subscriptions/1/verify")
    assert "as many as it may have" in await operator.after("/subscriptions/1/verify")


async def test_why_a_subscription_is_paused_stands_where_people_ask(
    world: Deliveries, engine: Database, sign_in: SignIn
) -> None:
    operator = await sign_in("operator")
    await operator.after("/subscriptions/1/pause", reason="migration of the shop")
    await world.publish()
    await world.route()
    answer = await why(await engine.open("observer"), "event:1", 16)
    assert any("(migration of the shop)" in reason.text for part in answer.parts for reason in part.reasons)
    assert "migration of the shop" in await operator.text("/events/1")
    assert "It is resumed" in await operator.after("/subscriptions/1/resume")
    assert not (await one(engine))["paused"]
    assert "one line" in await operator.after("/subscriptions/1/pause", reason="x" * 501)
    assert not (await one(engine))["paused"]


async def test_an_admin_takes_one_out_of_routing_and_back(world: Deliveries, engine: Database, sign_in: SignIn) -> None:
    admin = await sign_in()
    assert "events pass it by" in await admin.after("/subscriptions/1/deactivate")
    assert not (await one(engine))["active"]
    assert "takes part in routing again" in await admin.after("/subscriptions/1/activate", reason="ignored")
    assert (await one(engine))["active"]


async def test_a_replay_is_previewed_and_makes_up_for_what_was_missed(
    world: Deliveries, engine: Database, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.sql("UPDATE subscriptions SET active = false WHERE id = 1")
    await world.publish(3)
    await world.route()
    await world.sql("UPDATE subscriptions SET active = true WHERE id = 1")
    operator = await sign_in("operator")
    preview = await operator.text(f"/subscriptions/1/replay?since={ago(hours=1)}")
    assert "3 of the first 3 events since then would be sent." in preview
    monkeypatch.setattr(missed_module, "LOOKED_AT", 2)
    assert "There are more events after" in await operator.text(f"/subscriptions/1/replay?since={ago(hours=1)}")
    (since,) = re.findall(r'name="since" value="([^"]+\+00:00)"', preview)
    text = await operator.after("/subscriptions/1/replay", since=html.unescape(since))
    assert "3 past events, 3 of them are on their way now." in text
    assert await engine.value("SELECT COUNT(*) FROM webhook_delivery_sagas WHERE subscription_id = 1") == 3
    monkeypatch.undo()
    assert "There is nothing to make up for." in await operator.text(f"/subscriptions/1/replay?since={ago(hours=1)}")
    assert "There is no event since then." in await operator.text("/subscriptions/1/replay?since=2999-01-01T00:00")
    assert (await operator.get("/subscriptions/1/replay?since=nonsense")).status_code == 422


async def test_a_replay_behind_a_closed_gate_is_refused_in_words(world: Deliveries, sign_in: SignIn) -> None:
    await world.sql("UPDATE gates SET is_open = false")
    text = await (await sign_in("operator")).after("/subscriptions/1/replay", since=ago(hours=1))
    assert "gate" in text
    assert 'class="flash bad"' in text


async def test_what_is_foreign_is_text(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    await world.sql(f"UPDATE subscriptions SET description = '{QUOTED}', callback_url = 'https://a.example/{QUOTED}'")
    admin = await sign_in()
    await admin.after("/subscriptions/1/pause", reason=HOSTILE)
    for path in (
        "/subscriptions",
        "/subscriptions/1",
        "/subscriptions/1/live",
        "/subscriptions/1/edit",
        f"/subscriptions/1/replay?since={ago(hours=1)}",
        f"/subscriptions/1/replay?since={HOSTILE}",
    ):
        response = await admin.get(path)
        assert response.status_code in (200, 422), path
        assert "<script>alert" not in response.text, path
        assert "<img src=x" not in response.text, path
        assert 'onmouseover="alert' not in response.text, path
    refused = await admin.post("/subscriptions", **{**NEW, "description": HOSTILE, "event_type": HOSTILE})
    assert refused.status_code == 422
    assert "<script>alert" not in refused.text


async def test_what_is_not_there_is_not_found(sign_in: SignIn) -> None:
    admin = await sign_in()
    for path in ("", "/live", "/edit", "/replay"):
        assert (await admin.get(f"/subscriptions/999{path}")).status_code == 404, path
    for deed in ("pause", "verify", "test", "edit", "rotate-secret", "activate"):
        assert (await admin.post(f"/subscriptions/999/{deed}", **NEW, version="1")).status_code == 404, deed
