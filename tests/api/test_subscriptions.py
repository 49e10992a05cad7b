"""Subscriptions: secrets are shown once, nothing unseen is overwritten, and nobody is verified by their own word."""

import json
from typing import Any

import httpx
import pytest

from tests.api.conftest import Served, problem
from tests.roles.observer.world import World
from tests.support.database import Database
from tidings.model.key import Scope

URL = "https://hooks.example.com/in"


async def made(admin: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await admin.post("/v1/subscriptions", json={"event_type": "order.*", "callback_url": URL, **more})
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_a_new_subscription_is_unverified_and_shows_its_secret_once(
    admin: httpx.AsyncClient, served: Served, engine: Database
) -> None:
    one = await made(admin, description="Invoices", headers={"x-token": "very-secret"}, max_retry_limit=3)
    assert one["secret"].startswith("whsec_")
    assert not one["verified"]
    assert (one["event_domain"], one["max_retry_limit"], one["verification"]) == ("default", 3, "proof")
    viewer = served.as_(Scope.VIEWER)
    shown = await viewer.get(f"/v1/subscriptions/{one['id']}")
    listed = await viewer.get("/v1/subscriptions")
    assert listed.json()["items"] == [shown.json()]
    for answer in (shown, listed):
        assert "secret" not in answer.json()
        assert one["secret"] not in answer.text
        assert "very-secret" not in answer.text
    (row,) = await engine.sql(
        "SELECT actor, action, detail FROM audit_log WHERE subject LIKE 'subscription:%'", "observer"
    )
    assert row["actor"].startswith("key:")
    assert "very-secret" not in row["detail"]


async def test_a_host_on_the_allow_lists_can_be_trusted_at_once(admin: httpx.AsyncClient) -> None:
    one = await made(admin, callback_url="http://127.0.0.1:9/hook", verification="none")
    assert one["verified"]
    assert "trusted" in one["state"]
    said = problem(
        await admin.post("/v1/subscriptions", json={"event_type": "a", "callback_url": URL, "verification": "none"}),
        422,
        "invalid",
    )
    assert said["errors"]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"callback_url": "http://example.com/"}, "/callback_url"),
        ({"callback_url": "https://10.0.0.1/"}, "/callback_url"),
        ({"event_type": "a b"}, "/event_type"),
        ({"event_type": "\ud800"}, "/event_type"),
        ({"verified": True}, "/verified"),
        ({"id": 7}, "/id"),
        ({"max_retry_limit": 0}, "/max_retry_limit"),
        ({"max_retry_limit": "3"}, "/max_retry_limit"),
        ({"headers": {"host": "x"}}, "/headers"),
        ({"secret": "abc"}, "/secret"),
        ({"description": "a\u0000b"}, "/description"),
    ],
)
async def test_what_can_not_be_subscribed_is_refused_by_field(
    admin: httpx.AsyncClient, engine: Database, given: dict[str, Any], pointer: str
) -> None:
    body = json.dumps({"event_type": "a", "callback_url": URL, **given})
    answer = await admin.post("/v1/subscriptions", content=body, headers={"content-type": "application/json"})
    said = problem(answer, 422, "invalid")
    assert [one["pointer"] for one in said["errors"]] == [pointer]
    assert await engine.value("SELECT COUNT(*) FROM subscriptions") == 0


async def test_everything_that_is_wrong_is_told_by_field(admin: httpx.AsyncClient) -> None:
    answer = await admin.post("/v1/subscriptions", json={"event_type": "a b", "callback_url": "ftp://x"})
    assert [one["pointer"] for one in problem(answer, 422, "invalid")["errors"]] == ["/event_type", "/callback_url"]


async def test_an_edit_with_an_old_etag_changes_nothing(admin: httpx.AsyncClient) -> None:
    one = await made(admin)
    path = f"/v1/subscriptions/{one['id']}"
    etag = (await admin.get(path)).headers["etag"]
    first = await admin.patch(path, json={"description": "mine"}, headers={"If-Match": etag})
    assert first.status_code == 200
    assert first.headers["etag"] != etag
    problem(
        await admin.patch(path, json={"description": "late"}, headers={"If-Match": etag}), 412, "precondition_failed"
    )
    problem(
        await admin.patch(path, json={"description": "late"}, headers={"If-Match": "x"}), 412, "precondition_failed"
    )
    assert (await admin.get(path)).json()["description"] == "mine"
    assert (await admin.patch(path, json={"description": "again"}, headers={"If-Match": "*"})).status_code == 200
    assert (await admin.patch(path, json={"description": "and"})).json()["description"] == "and"


async def test_nobody_sets_verified_by_hand_and_a_new_url_waits(admin: httpx.AsyncClient, engine: Database) -> None:
    one = await made(admin)
    path = f"/v1/subscriptions/{one['id']}"
    problem(await admin.patch(path, json={"verified": True}), 422, "invalid")
    problem(await admin.patch(path, json={}), 422, "invalid")
    problem(await admin.patch(path, json={"active": None}), 422, "invalid")
    await engine.sql("UPDATE subscriptions SET verified = true")
    changed = (await admin.patch(path, json={"callback_url": "https://new.example.com/"})).json()
    assert (changed["callback_url"], changed["pending_callback_url"]) == (URL, "https://new.example.com/")
    assert changed["verified"]
    problem(await admin.patch("/v1/subscriptions/999", json={"paused": True}), 404, "not_found")


async def test_an_operator_pauses_and_resumes_and_only_an_admin_rotates_the_secret(
    admin: httpx.AsyncClient, served: Served
) -> None:
    one = await made(admin)
    operator, path = served.as_(Scope.OPERATOR), f"/v1/subscriptions/{one['id']}"
    assert (await operator.post(f"{path}/pause")).json()["paused"]
    assert (await operator.post(f"{path}/pause")).json()["paused"]
    assert not (await operator.post(f"{path}/resume", json={"reason": "repaired"})).json()["paused"]
    problem(await operator.post(f"{path}/pause", json={"reason": "two\nlines"}), 422, "invalid")
    problem(await operator.post(f"{path}/rotate-secret"), 403, "forbidden")
    new = (await admin.post(f"{path}/rotate-secret")).json()
    assert new["secret"].startswith("whsec_")
    assert new["secret"] != one["secret"]
    assert (await admin.post(f"{path}/rotate-secret", json={"overlap_seconds": 0})).status_code == 200
    problem(await admin.post(f"{path}/rotate-secret", json={"overlap_seconds": -1}), 422, "invalid")
    problem(await admin.post("/v1/subscriptions/999/rotate-secret"), 404, "not_found")


async def test_verification_and_test_ask_for_a_call(admin: httpx.AsyncClient, engine: Database) -> None:
    one = await made(admin)
    path = f"/v1/subscriptions/{one['id']}"
    problem(await admin.post(f"{path}/test"), 422, "invalid")
    asked = (await admin.post(f"{path}/verify")).json()
    assert asked["check_id"]
    await engine.sql("UPDATE subscriptions SET verified = true")
    assert (await admin.post(f"{path}/verify")).json()["check_id"] is None
    assert (await admin.post(f"{path}/test")).json()["check_id"] > asked["check_id"]
    rows = await engine.sql("SELECT biz_type FROM sys_pending_tasks ORDER BY id", "observer")
    assert [row["biz_type"] for row in rows] == ["subscription.verify", "subscription.test"]
    for _ in range(50):
        answer = await admin.post(f"{path}/test")
        if answer.status_code != 202:
            break
    problem(answer, 429, "limit_reached")
    assert answer.headers["retry-after"]


async def test_a_replay_makes_up_for_what_was_missed(admin: httpx.AsyncClient, engine: Database) -> None:
    world = World(engine)
    await world.set()
    await world.publish(3)
    await world.route()
    await engine.sql(
        "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
        " VALUES ('*', 'https://c.example/', true, true)"
    )
    id = await engine.value("SELECT MAX(id) FROM subscriptions")
    body = {"since": "2001-01-01T00:00:00Z"}
    first = await admin.post(f"/v1/subscriptions/{id}/replay", json=body)
    assert first.json() == {"looked_at": 3, "made": 3, "refused": 0, "is_done": True}
    assert (await admin.post(f"/v1/subscriptions/{id}/replay", json=body)).json()["made"] == 0
    await engine.sql("UPDATE gates SET is_open = false")
    problem(await admin.post(f"/v1/subscriptions/{id}/replay", json=body), 409, "gate_closed")
    problem(await admin.post("/v1/subscriptions/999/replay", json=body), 409, "gate_closed")
