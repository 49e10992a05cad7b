"""What is done over HTTP is written down with it: who, by which request, from where. So is what was refused."""

from typing import Any

import httpx

from tests.api.conftest import Served, problem
from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database
from tidings.api.denials import MOST_A_MINUTE
from tidings.decisions.keys import public_id_of
from tidings.model.key import Scope


async def audited(engine: Database) -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql("SELECT * FROM audit_log ORDER BY id", "observer")]


async def test_every_change_is_written_down_with_its_request(
    served: Served, admin: httpx.AsyncClient, scene: Scene, engine: Database
) -> None:
    """Actor, key id, address, action, target, request id; in the same transaction."""
    (letter,) = await scene.letters(await scene.subscription())
    (saga,) = await scene.ended(await scene.subscription())
    before = len(await audited(engine))
    task = (await admin.post("/v1/tasks", json={"biz_type": "A", "biz_key": "1"})).json()["id"]
    subscription = {"event_type": "a", "callback_url": "http://127.0.0.1:9/in", "verification": "none"}
    route = await admin.post("/v1/routes", json={"event_type": "order.*"})
    made = await admin.post("/v1/subscriptions", json=subscription)
    answers: list[httpx.Response] = [
        route,
        made,
        await admin.patch(f"/v1/routes/{route.json()['id']}", json={"dry_run": True}),
        await admin.delete(f"/v1/routes/{route.json()['id']}"),
        await admin.put("/v1/gates/routing", json={"is_open": True, "reason": "test"}),
        await admin.post(f"/v1/subscriptions/{made.json()['id']}/pause"),
        await admin.post(f"/v1/subscriptions/{made.json()['id']}/rotate-secret"),
        await admin.post(f"/v1/dead-letters/{letter}/requeue"),
        await admin.post(f"/v1/sagas/{saga}/resend"),
        await admin.post(f"/v1/tasks/{task}/cancel", json={"reason": "test"}),
        await admin.post("/v1/dead-letters/requeue", json={}),
    ]
    rows = (await audited(engine))[before:]
    actor = f"key:{public_id_of(served.keys['admin'])}"
    for answer in answers:
        assert answer.is_success, answer.text
        own = [row for row in rows if row["request_id"] == answer.headers["x-request-id"]]
        assert own, f"{answer.request.method} {answer.request.url.path} left no trace"
        assert {(row["actor"], row["address"]) for row in own} == {(actor, "127.0.0.1")}


async def test_what_a_person_does_at_the_keyboard_has_no_request(served: Served, engine: Database) -> None:
    await served.key("viewer")
    assert {(row["request_id"], row["address"]) for row in await audited(engine)} == {(None, None)}


async def test_what_a_key_was_refused_is_written_down_but_not_without_end(served: Served, engine: Database) -> None:
    viewer = served.as_(Scope.VIEWER)
    first = await viewer.post("/v1/routes", json={"event_type": "a"})
    problem(first, 403, "forbidden")
    for _ in range(MOST_A_MINUTE + 5):
        problem(await viewer.put("/v1/gates/routing", json={"is_open": True}), 403, "forbidden")
    problem(await served.as_(Scope.PUBLISHER).get("/v1/events"), 403, "forbidden")
    problem(await viewer.post("/v1/events", json={"event_type": "a", "payload": 1}), 403, "forbidden")
    denied = [row for row in await audited(engine) if row["action"] == "request.denied"]
    assert len(denied) == MOST_A_MINUTE + 1
    assert (denied[0]["subject"], denied[0]["request_id"]) == ("POST /v1/routes", first.headers["x-request-id"])
    assert denied[0]["actor"] == f"key:{public_id_of(served.keys['viewer'])}"
    assert denied[-1]["subject"] == "GET /v1/events"
