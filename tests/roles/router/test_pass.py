"""One pass of the router: what it decides, what it writes, and with how few statements."""

import json

import pytest

from tests.roles.router.scene import Scene
from tests.support.fault_proxy import FaultProxy
from tidings.roles.router.passes import Outcome

PAYLOAD = '{"b":1,  "a": "Zürich – 東京 😀", "b":2, "n": 1.10, "e": 1E5}'


async def test_an_event_becomes_one_saga_for_each_subscription_that_wants_it(scene: Scene) -> None:
    """Seed 002, phase 4: "For each (event, subscription) pair, insert into webhook_delivery_sagas"."""
    first, second = await scene.subscription("order.paid"), await scene.subscription("order.*")
    await scene.subscription("invoice.sent")
    (event,) = await scene.events(1)
    await scene.drain()
    assert await scene.sagas() == [(event, first), (event, second)]
    (attempt,) = await scene.attempts()
    assert (attempt["status"], attempt["matched"], attempt["attempt_no"]) == ("sent", 2, 1)


async def test_the_very_first_pass_routes_too(scene: Scene) -> None:
    await scene.subscription()
    await scene.events(3)
    done = await scene.router.step()
    assert (done.outcome, done.read, done.sagas) == (Outcome.ROUTED, 3, 3)


async def test_webhooks_and_each_type_of_task_are_decided_by_themselves(scene: Scene) -> None:
    """The most specific webhook route counts, and for each task_biz_type the most specific task route."""
    subscription = await scene.subscription()
    await scene.route(target="task", task_biz_type="MAIL")
    mail = await scene.route("order.*", target="task", task_biz_type="MAIL")
    report = await scene.route(target="task", task_biz_type="REPORT")
    webhook = await scene.route("order.paid")
    event = await scene.event()
    await scene.drain()
    assert await scene.sagas() == [(event, subscription)]
    assert await scene.tasks() == [("MAIL", str(event)), ("REPORT", str(event))]
    decided = {(one["route_id"], one["route_kind"], one["status"], one["matched"]) for one in await scene.attempts()}
    assert decided == {(webhook, "webhook", "sent", 1), (mail, "task", "sent", 1), (report, "task", "sent", 1)}


async def test_the_most_specific_route_wins_by_type_then_domain_then_stream(bare: Scene) -> None:
    await bare.open_gates()
    by_type = await bare.route("order.*")
    by_domain = await bare.route("*", event_domain="shop")
    by_stream = await bare.route("*", event_stream="eu")
    await bare.event("order.paid", event_domain="shop", event_stream="eu")
    await bare.event("invoice", event_domain="shop", event_stream="eu")
    await bare.event("invoice", event_domain="other", event_stream="eu")
    await bare.drain()
    assert [one["route_id"] for one in await bare.attempts()] == [by_type, by_domain, by_stream]


async def test_a_disabled_route_does_not_fall_back_to_a_wider_one(scene: Scene) -> None:
    await scene.subscription()
    disabled = await scene.route("order.paid", enabled=False)
    await scene.event()
    await scene.drain()
    (attempt,) = await scene.attempts()
    assert (attempt["route_id"], attempt["status"], attempt["reason"]) == (disabled, "disabled", "route_disabled")
    assert await scene.sagas() == []


async def test_an_event_without_a_route_is_skipped(bare: Scene) -> None:
    await bare.open_gates()
    await bare.subscription()
    event = await bare.event()
    await bare.drain()
    (attempt,) = await bare.attempts()
    assert (attempt["status"], attempt["reason"], attempt["route_id"]) == ("skipped", "no_route", None)
    assert (attempt["route_kind"], attempt["idempotency_key"]) == ("", f"wrk:default:-:{event}")


async def test_who_is_left_out_stands_in_the_attempt(scene: Scene) -> None:
    """Ruling 11: inactive and unverified subscriptions get no saga, and "the attempt's detail … say so"."""
    unverified = await scene.subscription(verified=False)
    inactive = await scene.subscription(active=False)
    await scene.event()
    await scene.drain()
    (attempt,) = await scene.attempts()
    assert (attempt["status"], attempt["reason"], attempt["matched"]) == ("skipped", "no_subscription", 0)
    assert attempt["detail"] == f"left out: {unverified} (unverified), {inactive} (inactive)"
    assert await scene.sagas() == []


async def test_a_paused_subscription_still_gets_its_sagas(scene: Scene) -> None:
    paused = await scene.subscription(paused=True)
    event = await scene.event()
    await scene.drain()
    assert await scene.sagas() == [(event, paused)]


async def test_a_dry_run_records_the_decision_and_creates_nothing(scene: Scene) -> None:
    """Ruling 14."""
    await scene.subscription()
    await scene.route("order.*", dry_run=True)
    await scene.route("order.*", target="task", task_biz_type="MAIL", dry_run=True)
    await scene.event()
    done = await scene.router.step()
    assert [(one["status"], one["matched"]) for one in await scene.attempts()] == [("dry_run", 1)] * 2
    assert (await scene.sagas(), await scene.tasks(), done.sagas, done.tasks) == ([], [], 0, 0)


async def test_a_task_carries_the_payload_byte_for_byte_and_the_name_of_its_event(scene: Scene) -> None:
    await scene.route("order.*", target="task", task_biz_type="MAIL")
    event = await scene.event(payload=PAYLOAD, correlation_id="c-1")
    await scene.drain()
    (task,) = await scene.sql("SELECT * FROM sys_pending_tasks")
    assert (task["payload"], task["biz_key"], task["correlation_id"]) == (PAYLOAD, str(event), "c-1")
    assert (task["status"], task["retry_count"], task["version"]) == (0, 0, 0)


async def test_a_saga_begins_pending_in_generation_0_with_the_event_s_correlation_id(scene: Scene) -> None:
    await scene.subscription()
    await scene.event(correlation_id="c-1")
    await scene.drain()
    (saga,) = await scene.sql("SELECT * FROM webhook_delivery_sagas")
    assert (saga["generation"], saga["correlation_id"]) == (0, "c-1")
    assert (saga["status"], saga["attempt_count"], saga["final_error_code"]) == ("Pending", 0, None)


async def test_no_job_is_created_and_no_saga_is_changed(scene: Scene) -> None:
    """Seed 002, phase 4: "Do not create jobs, do not change saga status in this worker."."""
    subscription = await scene.subscription()
    event = await scene.event()
    await scene.drain()
    await scene.sql(f"UPDATE webhook_delivery_sagas SET status = 'InProgress' WHERE event_id = {event}")
    before = await scene.sql("SELECT * FROM webhook_delivery_sagas")
    await scene.rewind()
    await scene.drain()
    assert await scene.sql("SELECT * FROM webhook_delivery_sagas") == before
    assert await scene.sagas() == [(event, subscription)]
    assert await scene.count("webhook_delivery_jobs") == 0


async def test_the_cursor_knows_its_place_and_the_identity_of_the_last_event(scene: Scene) -> None:
    await scene.subscription()
    *_, last = await scene.events(3)
    await scene.drain()
    cursor = await scene.cursor()
    (event,) = await scene.sql(f"SELECT * FROM events WHERE id = {last}")
    assert (cursor["position"], cursor["last_event_id"]) == (last, last)
    assert cursor["last_event_correlation_id"] == event["correlation_id"]
    assert cursor["last_event_created_at"] == event["created_at"]
    summary = json.loads(cursor["last_run_summary"])
    assert (summary["read"], summary["sent"], summary["sagas"], summary["holes"]) == (3, 3, 3, 0)
    assert (cursor["runs"], cursor["sent_count"], cursor["event_domain"]) == (1, 3, "*")


async def test_a_pass_that_finds_nothing_writes_nothing(scene: Scene) -> None:
    await scene.events(2)
    await scene.drain()
    before = await scene.everything()
    assert (await scene.router.step()).outcome is Outcome.IDLE
    assert await scene.everything() == before


async def test_a_batch_ends_before_it_plans_more_sagas_than_it_may(scene: Scene) -> None:
    await scene.subscriptions(4)
    await scene.events(6)
    router = await scene.new_router(fan_out=10)
    assert [(done.read, done.sagas) for done in [await router.step() for _ in range(4)]] == [(2, 8)] * 3 + [(0, 0)]


async def test_an_event_with_more_sagas_than_a_batch_may_have_is_a_batch_of_its_own(scene: Scene) -> None:
    await scene.subscriptions(4)
    await scene.subscription("order.big")
    await scene.event("other")
    await scene.event("order.big")
    await scene.event("other")
    router = await scene.new_router(fan_out=4)
    assert [(await router.step()).sagas for _ in range(4)] == [4, 5, 4, 0]
    assert len(await scene.sagas()) == 13


@pytest.mark.slow
async def test_six_thousand_subscriptions_of_one_event_are_one_batch(scene: Scene) -> None:
    await scene.subscriptions(6_000)
    await scene.events(2)
    assert [(done.read, done.sagas) for done in [await scene.router.step() for _ in range(3)]] == [
        (1, 6_000),
        (1, 6_000),
        (0, 0),
    ]
    assert await scene.count("webhook_delivery_sagas") == 12_000


async def test_late_events_count_in_the_bound_of_a_batch(scene: Scene) -> None:
    """What did not fit stays a hole, and is routed next time."""
    await scene.subscriptions(4)
    late = await scene.late_writer(*["'late', 'default'"] * 5)
    await scene.event()
    router = await scene.new_router(fan_out=8)
    await scene.drain(router)
    await late.run("COMMIT")
    assert [(done.late, done.sagas) for done in [await router.step() for _ in range(4)]] == [
        (2, 8),
        (2, 8),
        (1, 4),
        (0, 0),
    ]
    assert (len(await scene.sagas()), await scene.holes()) == (24, [])


async def test_configuration_is_read_again_when_it_has_changed_and_only_then(proxy: FaultProxy, scene: Scene) -> None:
    """It is kept until config_version, which is read in the same transaction, has changed."""
    router = await scene.new_router(engine=await scene.engine(proxy))

    async def reads() -> tuple[int, int]:
        proxy.clear()
        await scene.event()
        await scene.drain(router)
        return proxy.seen.count("router.routes"), proxy.seen.count("router.subscribers")

    assert [await reads(), await reads()] == [(1, 1), (0, 0)]
    await scene.route("order.paid", enabled=False)
    assert [await reads(), await reads()] == [(1, 1), (0, 0)]
    await scene.subscription()
    assert [await reads(), await reads()] == [(1, 1), (0, 0)]
    assert await scene.statuses() == {"skipped": 2, "disabled": 4}


async def test_a_pass_over_a_thousand_events_is_a_handful_of_statements(proxy: FaultProxy, scene: Scene) -> None:
    await scene.subscriptions(3)
    router = await scene.new_router(engine=await scene.engine(proxy))
    await scene.event()
    await scene.drain(router)
    await scene.events(1_000)
    proxy.clear()
    done = await router.step()
    assert (done.read, done.sagas) == (1_000, 3_000)
    ours = [name for name in proxy.seen if not name.endswith(("settled_writers", "forget_writers"))]
    assert len(ours) <= 15, ours
    # Markers of writers are forgotten after the pass, a thousand at a time.
    assert len(proxy.seen) - len(ours) <= 4
