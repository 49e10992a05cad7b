"""A test event: to that one subscription only, as a delivery would be, and without a trace in the log of events."""

import json
from typing import Any

import pytest

from tests.roles.verifier.scene import SECRET, Scene, proving
from tests.support.receiver import Answer
from tidings.errors import LimitReached, NotFound, SubscriptionRefused
from tidings.model.endpoint_check import CheckOutcome
from tidings.roles.subscriptions import actions


async def verified(scene: Scene, path: str = "/hook", **given: Any) -> int:
    id = await scene.subscription(path, **given)
    scene.receiver.answer(path, proving())
    await scene.verify(id)
    scene.receiver.requests.clear()
    scene.receiver.answer(path, Answer())
    return id


async def test_it_is_sent_as_a_delivery_would_be_and_to_that_one_only(scene: Scene) -> None:
    await verified(scene, "/other")
    id = await verified(scene, headers={"x-key": "private"})
    check = await scene.ask_test(id)
    assert await scene.call(check) is CheckOutcome.PASSED
    (request,) = scene.receiver.requests
    request.verify(SECRET)
    assert request.path == "/hook"
    assert request.message.startswith("tst_")
    assert json.loads(request.body) == {"test": True, "subscription": id}
    wanted = {
        "content-type": "application/json",
        "tidings-event-type": "tidings.test",
        "tidings-correlation-id": "correlated",
        "tidings-attempt": "1",
        "x-key": "private",
    }
    assert wanted.items() <= request.headers.items()
    stored = await scene.check(check)
    assert (stored["outcome"], stored["error_code"]) == ("passed", None)
    assert stored["duration_ms"] >= 0


async def test_it_is_a_task_and_no_event(scene: Scene) -> None:
    id = await verified(scene)
    await scene.call(await scene.ask_test(id))
    for table in ("events", "webhook_delivery_sagas", "webhook_delivery_jobs", "route_attempts"):
        assert await scene.database.value(f"SELECT COUNT(*) FROM {table}") == 0
    types = [row["biz_type"] for row in await scene.database.sql("SELECT biz_type FROM sys_pending_tasks ORDER BY id")]
    assert types == ["subscription.verify", "subscription.test"]


async def test_how_the_endpoint_took_it_is_stored_by_its_code(scene: Scene) -> None:
    id = await verified(scene)
    scene.receiver.answer("/hook", Answer(status=503, body=b"a word from the inside"))
    check = await scene.ask_test(id)
    assert await scene.call(check) is CheckOutcome.FAILED
    stored = await scene.check(check)
    assert stored["error_code"] == "http_503"
    assert "inside" not in str(stored)


async def test_two_tests_have_two_ids(scene: Scene) -> None:
    id = await verified(scene)
    for check in [await scene.ask_test(id), await scene.ask_test(id)]:
        assert await scene.call(check) is CheckOutcome.PASSED
    first, second = scene.receiver.requests
    assert first.message != second.message


async def test_nothing_is_sent_to_what_is_not_verified_or_not_active(scene: Scene) -> None:
    unverified = await scene.subscription()
    with pytest.raises(SubscriptionRefused, match="unverified"):
        await scene.ask_test(unverified)
    inactive = await verified(scene, "/inactive")
    admin = await scene.database.open("subscription_admin")
    await actions.deactivate(admin, inactive, actor="test")
    with pytest.raises(SubscriptionRefused, match="inactive"):
        await scene.ask_test(inactive)
    with pytest.raises(NotFound):
        await scene.ask_test(999)
    assert await scene.database.value("SELECT COUNT(*) FROM endpoint_checks WHERE kind = 'test'") == 0


async def test_what_was_deactivated_meanwhile_is_not_called(scene: Scene) -> None:
    id = await verified(scene)
    check = await scene.ask_test(id)
    admin = await scene.database.open("subscription_admin")
    await actions.deactivate(admin, id, actor="test")
    assert await scene.call(check) is CheckOutcome.OUTDATED
    assert scene.receiver.requests == []


async def test_a_subscription_is_not_tried_out_without_end(scene: Scene) -> None:
    id = await verified(scene)
    values = ", ".join([f"({id}, 'test', 'https://a.b/', 'a.b', 'c', '2100-01-01')"] * 30)
    await scene.database.sql(
        f"INSERT INTO endpoint_checks (subscription_id, kind, url, host, challenge, expires_at) VALUES {values}"
    )
    with pytest.raises(LimitReached):
        await scene.ask_test(id)
