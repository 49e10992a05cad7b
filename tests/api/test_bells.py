"""Who has something to do after a request is woken then, and does not wait for a look of their own."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.api.conftest import Served, serving
from tests.console.visitor import Visitor
from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database
from tests.support.waiting import eventually
from tidings.model.key import Scope

TASK = {"biz_type": "EMAIL_SEND", "biz_key": "order-7"}


@pytest.fixture
def rung() -> list[str]:
    return []


@pytest.fixture
async def served(engine: Database, rung: list[str]) -> AsyncIterator[Served]:
    async with serving(engine, ring=rung.append) as served:
        yield served


async def test_a_published_event_wakes_the_router(admin: httpx.AsyncClient, rung: list[str]) -> None:
    assert (await admin.post("/v1/events", json={"event_type": "a", "payload": {}})).status_code == 202
    assert rung == ["router"]


async def test_a_task_that_is_submitted_or_retried_wakes_the_task_worker(
    admin: httpx.AsyncClient, engine: Database, rung: list[str]
) -> None:
    task = (await admin.post("/v1/tasks", json=TASK)).json()["id"]
    assert rung == ["task-worker"]
    await engine.sql(f"UPDATE sys_pending_tasks SET status = 4 WHERE id = {task}")
    assert (await admin.post(f"/v1/tasks/{task}/retry")).status_code == 200
    assert rung == ["task-worker", "task-worker"]


async def test_a_task_that_is_refused_wakes_nobody(admin: httpx.AsyncClient, rung: list[str]) -> None:
    assert (await admin.post("/v1/tasks", json={**TASK, "biz_type": "two words"})).status_code == 422
    assert rung == []


async def test_a_verification_and_a_test_wake_the_verifier(
    admin: httpx.AsyncClient, engine: Database, rung: list[str]
) -> None:
    given = {"event_type": "*", "callback_url": "https://example.com/"}
    path = f"/v1/subscriptions/{(await admin.post('/v1/subscriptions', json=given)).json()['id']}"
    assert (await admin.post(f"{path}/verify")).status_code == 202
    assert rung == ["verifier"]
    await engine.sql("UPDATE subscriptions SET verified = true")
    assert (await admin.post(f"{path}/test")).status_code == 202
    assert rung == ["verifier", "verifier"]


async def test_what_is_sent_again_wakes_the_orchestrator(
    admin: httpx.AsyncClient, scene: Scene, rung: list[str]
) -> None:
    subscription = await scene.subscription()
    (letter,), (saga,) = await scene.letters(subscription), await scene.ended(subscription)
    assert (await admin.post(f"/v1/dead-letters/{letter}/requeue")).status_code == 202
    assert rung == ["orchestrator"]
    assert (await admin.post(f"/v1/sagas/{saga}/resend")).status_code == 202
    assert rung == ["orchestrator"] * 2
    await scene.letters(subscription, 3)
    assert (await admin.post("/v1/dead-letters/requeue", json={})).status_code == 202
    await eventually(lambda: len(rung) > 2, what="the requeue of many to wake somebody")
    assert set(rung) == {"orchestrator"}


async def test_a_gate_that_is_opened_wakes_the_router(admin: httpx.AsyncClient, rung: list[str]) -> None:
    assert (await admin.put("/v1/gates/routing", json={"is_open": True})).status_code == 200
    assert rung == ["router"]


async def test_the_console_wakes_as_the_api_does(served: Served, scene: Scene, rung: list[str]) -> None:
    (letter,) = await scene.letters(await scene.subscription())
    async with Visitor(served.url) as visitor:
        await visitor.sign_in(served.keys[Scope.ADMIN])
        await visitor.after(f"/dead-letters/{letter}/requeue")
        await visitor.after("/subscriptions/1/test")
    assert rung == ["orchestrator", "verifier"]
