"""What operators do: requeue and resend, routes and gates, routing dead letters, tasks."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.api.conftest import Served, problem
from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database
from tests.support.waiting import eventually
from tidings.model.key import Scope


@pytest.fixture
def operator(served: Served) -> httpx.AsyncClient:
    return served.as_(Scope.OPERATOR)


async def test_a_dead_letter_is_requeued_once_also_by_two_at_once(operator: httpx.AsyncClient, scene: Scene) -> None:
    """Ruling 1."""
    (letter,) = await scene.letters(await scene.subscription())
    both = await asyncio.gather(*(operator.post(f"/v1/dead-letters/{letter}/requeue") for _ in range(2)))
    said = [answer.json() for answer in both]
    assert sorted(one["already_requeued"] for one in said) == [False, True]
    assert {one["saga_id"] for one in said} == {row["id"] for row in await scene.next_generation()}
    shown = (await operator.get(f"/v1/dead-letters/{letter}")).json()
    assert (shown["requeued_as"], shown["requeued_status"]) == (said[0]["saga_id"], "Pending")
    assert all(actor.startswith("key:") for actor, action, _ in await scene.audited() if "requeue" in action)


async def test_what_can_not_be_requeued_is_refused_with_the_reason(operator: httpx.AsyncClient, scene: Scene) -> None:
    (letter,) = await scene.letters(await scene.subscription(active=False))
    said = problem(await operator.post(f"/v1/dead-letters/{letter}/requeue"), 409, "conflict")
    assert "not active" in said["detail"]
    problem(await operator.post("/v1/dead-letters/999/requeue"), 404, "not_found")
    (saga,) = [row["id"] for row in await scene.all("webhook_delivery_sagas")]
    problem(await operator.post(f"/v1/sagas/{saga}/resend"), 409, "conflict")


async def test_a_completed_saga_is_sent_once_more(operator: httpx.AsyncClient, scene: Scene) -> None:
    (saga,) = await scene.ended(await scene.subscription())
    said = (await operator.post(f"/v1/sagas/{saga}/resend")).json()
    assert (said["generation"], said["already_requeued"]) == (1, False)
    problem(await operator.post("/v1/sagas/999/resend"), 404, "not_found")


async def test_dead_letters_are_requeued_by_a_filter_and_progress_can_be_seen(
    operator: httpx.AsyncClient, scene: Scene
) -> None:
    subscription, other = await scene.subscription(), await scene.subscription(verified=False)
    await scene.letters(subscription, 30)
    await scene.letters(other, 2)
    seen = (await operator.post("/v1/dead-letters/requeue", json={"preview": True})).json()
    assert (seen["id"], seen["total"]) == (None, 32)
    assert seen["refused"] == [{"subscription_id": other, "active": True, "letters": 2}]
    for event_type, total in (("a", 32), ("b", 0)):
        seen = await operator.post("/v1/dead-letters/requeue", json={"preview": True, "event_type": event_type})
        assert seen.json()["total"] == total
    assert await scene.next_generation() == []
    begun = await operator.post("/v1/dead-letters/requeue", json={"subscription_id": subscription, "rate": 10_000})
    assert begun.status_code == 202
    id = begun.json()["id"]

    async def is_done() -> bool:
        return bool((await operator.get(f"/v1/dead-letters/requeues/{id}")).json()["status"] == "done")

    await eventually(is_done)
    assert len(await scene.next_generation()) == 30
    (stored,) = (await operator.get("/v1/dead-letters/requeues")).json()["items"]
    assert (stored["id"], stored["started_count"], stored["filter"]["subscription_id"]) == (id, 30, subscription)


async def test_a_requeue_by_filter_can_be_cancelled_and_is_not_resumed_then(
    operator: httpx.AsyncClient, scene: Scene
) -> None:
    await scene.letters(await scene.subscription(), 20)
    id = (await operator.post("/v1/dead-letters/requeue", json={"rate": 1})).json()["id"]
    assert (await operator.post(f"/v1/dead-letters/requeues/{id}/cancel")).json()["status"] == "cancelled"
    assert (await operator.post(f"/v1/dead-letters/requeues/{id}/resume")).json()["status"] == "cancelled"
    problem(await operator.get("/v1/dead-letters/requeues/999"), 404, "not_found")
    problem(await operator.post("/v1/dead-letters/requeue", json={"rate": 0}), 422, "invalid")
    problem(await operator.post("/v1/dead-letters/requeue", json={"error_code": "a b"}), 422, "invalid")


async def test_routes_are_added_changed_and_removed(admin: httpx.AsyncClient) -> None:
    made = await admin.post("/v1/routes", json={"event_type": "order.*"})
    assert made.status_code == 201
    id = made.json()["id"]
    problem(await admin.post("/v1/routes", json={"event_type": "order.*"}), 422, "invalid")
    problem(await admin.post("/v1/routes", json={"event_type": "a.*.b"}), 422, "invalid")
    task = {"target": "task", "task_biz_type": "MAIL"}
    assert (await admin.patch(f"/v1/routes/{id}", json=task)).json()["task_biz_type"] == "MAIL"
    assert (await admin.patch(f"/v1/routes/{id}", json={"target": "webhook"})).json()["task_biz_type"] == ""
    problem(await admin.patch(f"/v1/routes/{id}", json={"event_type": "\x00"}), 422, "invalid")
    assert [one["id"] for one in (await admin.get("/v1/routes")).json()["items"]] == [id]
    assert (await admin.delete(f"/v1/routes/{id}")).json()["id"] == id
    problem(await admin.delete(f"/v1/routes/{id}"), 404, "not_found")


async def test_gates_are_opened_and_closed(operator: httpx.AsyncClient) -> None:
    assert [one["is_open"] for one in (await operator.get("/v1/gates")).json()["items"]] == [False, False]
    opened = (await operator.put("/v1/gates/routing", json={"is_open": True, "reason": "go"})).json()
    assert (opened["is_open"], opened["reason"]) == (True, "go")
    assert opened["changed_by"].startswith("key:")
    assert not (await operator.put("/v1/gates/routing", json={"is_open": False})).json()["is_open"]
    assert (await operator.get("/v1/gates/router:default")).status_code == 200
    problem(await operator.put("/v1/gates/other", json={"is_open": True}), 422, "invalid")
    problem(await operator.put("/v1/gates/routing", json={"is_open": "yes"}), 422, "invalid")
    problem(await operator.get("/v1/gates/other"), 404, "not_found")


async def test_what_a_router_could_not_route_is_shown_and_replayed_behind_open_gates(
    operator: httpx.AsyncClient, engine: Database
) -> None:
    assert (await operator.get("/v1/routers")).json()["items"] == []
    problem(await operator.get("/v1/routers/default"), 404, "not_found")
    problem(await operator.post("/v1/route-dead-letters/1/replay"), 404, "not_found")
    await engine.sql("INSERT INTO route_worker_cursors (worker_name, event_domain) VALUES ('default', '*')")
    assert (await operator.get("/v1/routers/default")).json()["holes"] == []
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")
    snapshot = (
        '{"id": 1, "event_domain": "default", "event_type": "a", "event_stream": "", "correlation_id": "c", "n": 1.0}'
    )
    await engine.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
        f" VALUES (1, 'default', 'k', '{snapshot}', 'no')"
    )
    (letter,) = (await operator.get("/v1/route-dead-letters")).json()["items"]
    assert snapshot in (await operator.get(f"/v1/route-dead-letters/{letter['id']}")).text
    path = f"/v1/route-dead-letters/{letter['id']}/replay"
    problem(await operator.post(path), 409, "gate_closed")
    for gate in ("routing", "router:default"):
        await engine.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
    assert (await operator.post(path)).json()["statuses"] == ["skipped"]


async def test_tasks_are_submitted_listed_cancelled_and_retried(operator: httpx.AsyncClient) -> None:
    body = '{"biz_type": "MAIL", "biz_key": "7", "payload": {"a":  1.0}, "priority": 3}'
    json = {"content-type": "application/json"}
    made = await operator.post("/v1/tasks", content=body, headers=json)
    assert made.status_code == 202
    id = made.json()["id"]
    again = (await operator.post("/v1/tasks", json={"biz_type": "MAIL", "biz_key": "7"})).json()
    assert (again["id"], again["duplicate"], again["payload_differs"]) == (id, True, True)
    assert '"payload":{"a":  1.0}' in (await operator.get(f"/v1/tasks/{id}")).text
    for query in ("", "?biz_type=MAIL", "?biz_type=MAIL&biz_key=7"):
        assert [one["id"] for one in (await operator.get(f"/v1/tasks{query}")).json()["items"]] == [id]
    assert (await operator.get("/v1/tasks?archived=true")).json()["items"] == []
    problem(await operator.get("/v1/tasks?biz_key=7"), 422, "invalid")
    problem(await operator.post(f"/v1/tasks/{id}/retry"), 409, "conflict")
    assert (await operator.post(f"/v1/tasks/{id}/cancel", json={"reason": "no"})).json()["outcome"] == "cancelled"
    assert (await operator.post(f"/v1/tasks/{id}/retry")).json()["outcome"] == "retried"
    problem(await operator.post("/v1/tasks/999/cancel"), 404, "not_found")
    said = problem(await operator.post("/v1/tasks", json={"biz_type": "a b", "biz_key": "7"}), 422, "invalid")
    assert said["errors"][0]["pointer"] == "/biz_type"
    problem(await operator.post("/v1/tasks", json={"biz_type": "a", "biz_key": "7", "priority": 200}), 422, "invalid")


@pytest.mark.parametrize("payload", ["NaN", "-Infinity", '"\\ud800"'])
async def test_a_task_of_what_is_no_json_is_refused(operator: httpx.AsyncClient, payload: str) -> None:
    body = f'{{"biz_type": "MAIL", "biz_key": "7", "payload": {payload}}}'
    answer = await operator.post("/v1/tasks", content=body, headers={"content-type": "application/json"})
    problem(answer, 400, "malformed")
    assert (await operator.get("/v1/tasks")).json()["items"] == []


async def test_who_did_it_stands_in_the_audit_log(served: Served, engine: Database) -> None:
    key = await served.key("operator")
    await served.client(key).put("/v1/gates/routing", json={"is_open": True})
    rows: Any = await engine.sql("SELECT actor FROM audit_log WHERE action = 'gate.opened'", "observer")
    assert [row["actor"] for row in rows] == [f"key:{key.split('_')[1]}"]
