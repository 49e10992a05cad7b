"""The cursor at zero and everything again: nothing is doubled; what is decided otherwise now is the next attempt."""

import pytest

from tests.roles.router.scene import Scene
from tests.support.queue import Queue
from tidings.roles.router.passes import Outcome
from tidings.roles.routes import routers as admin

RESULTS = ("route_attempts", "webhook_delivery_sagas", "sys_pending_tasks")


@pytest.fixture
async def routed(scene: Scene) -> Scene:
    """Every kind of decision, taken once."""
    await scene.subscription("order.*")
    await scene.subscription("order.*", active=False)
    await scene.route("order.*", target="task", task_biz_type="MAIL")
    await scene.route("order.off", enabled=False)
    await scene.route("order.dry", dry_run=True)
    for event_type in ("order.paid", "order.off", "order.dry", "nobody.wants", "order.paid"):
        await scene.events(2, event_type)
    await scene.drain()
    return scene


async def results(scene: Scene) -> dict[str, list[tuple[object, ...]]]:
    everything = await scene.everything()
    return {table: everything[table] for table in RESULTS}


async def test_everything_again_writes_no_second_row(routed: Scene) -> None:
    """Seed 004: "even if the cursor is reset, … writes no duplicate attempt"."""
    before = await results(routed)
    assert await routed.statuses() == {"sent": 12, "disabled": 2, "dry_run": 2, "skipped": 2}
    await routed.rewind()
    await routed.drain()
    assert await results(routed) == before
    assert (await routed.cursor())["position"] == 10


async def test_the_command_rewinds_as_well(routed: Scene) -> None:
    before = await results(routed)
    await admin.rewind(await routed.database.open("route_admin"), "default", 0, "look again", "test")
    done = await routed.router.step()
    assert (done.outcome, done.read) == (Outcome.ROUTED, 10)
    await routed.drain()
    assert await results(routed) == before


async def test_tasks_that_were_archived_are_not_made_again(routed: Scene) -> None:
    """Neither where the decision is the same, nor where it was another one meanwhile."""
    queue = Queue(routed.database)
    await queue.archive(*await queue.ids())
    await routed.rewind()
    await routed.drain()
    assert await routed.tasks() == []
    for dry_run in ("true", "false"):
        await routed.sql(f"UPDATE routes SET dry_run = {dry_run} WHERE target = 'task'")
        await routed.rewind()
        await routed.drain()
    assert await routed.tasks() == []
    assert (await routed.statuses())["dry_run"] == 2 + 8


async def test_another_router_that_begins_at_zero_doubles_nothing(routed: Scene) -> None:
    before = await results(routed)
    await routed.sql(
        "INSERT INTO route_worker_cursors (worker_name, event_domain, position) VALUES ('newcomer', 'default', 0)"
    )
    await routed.open_gates("newcomer")
    await routed.drain(await routed.new_router("newcomer"))
    assert (await routed.cursor("newcomer"))["position"] == 10
    assert await results(routed) == before


async def test_what_was_disabled_and_is_enabled_now_is_sent_as_the_next_attempt(scene: Scene) -> None:
    subscription = await scene.subscription()
    route = await scene.route("order.*", enabled=False)
    event = await scene.event()
    await scene.drain()
    await scene.change_route(route, enabled=True)
    await scene.rewind()
    await scene.drain()
    assert await scene.decided() == [(event, "disabled", 1), (event, "sent", 2)]
    assert await scene.sagas() == [(event, subscription)]
    keys = {one["idempotency_key"] for one in await scene.attempts()}
    assert keys == {f"wrk:default:{route}:{event}"}


async def test_what_was_sent_is_not_sent_again_after_a_dry_run(scene: Scene) -> None:
    webhook = await scene.route("order.*")
    task = await scene.route("order.*", target="task", task_biz_type="MAIL")
    subscription = await scene.subscription()
    event = await scene.event()
    await scene.drain()
    for dry_run in (True, False):
        await scene.change_route(webhook, dry_run=dry_run)
        await scene.change_route(task, dry_run=dry_run)
        await scene.rewind()
        await scene.drain()
    decided = [(one["status"], one["attempt_no"], one["matched"]) for one in await scene.attempts()]
    assert decided == [("sent", 1, 1)] * 2 + [("dry_run", 2, 1)] * 2 + [("sent", 3, 0)] * 2
    assert {one["detail"] for one in await scene.attempts()} == {"", "already_sent"}
    assert (await scene.sagas(), await scene.tasks()) == ([(event, subscription)], [("MAIL", str(event))])


async def test_sagas_that_are_missing_are_made_with_the_next_attempt(scene: Scene) -> None:
    """Sent to one, and then by another route: only the other one gets it now."""
    first = await scene.subscription()
    event = await scene.event()
    await scene.drain()
    second = await scene.subscription()
    await scene.route("order.*")
    await scene.rewind()
    await scene.drain()
    assert await scene.sagas() == [(event, first), (event, second)]
    assert [(one["attempt_no"], one["matched"]) for one in await scene.attempts()] == [(1, 1), (2, 1)]


async def test_a_new_subscription_gets_nothing_by_a_rewind_alone(scene: Scene) -> None:
    """The decision is the same; `subscriptions replay` makes up for the past."""
    await scene.subscription()
    await scene.event()
    await scene.drain()
    await scene.subscription()
    await scene.rewind()
    await scene.drain()
    assert len(await scene.sagas()) == 1


async def test_an_event_that_waits_in_the_dead_letters_is_left_alone(scene: Scene) -> None:
    await scene.subscription()
    event, other = await scene.events(2)
    await scene.drain()
    await scene.sql(
        "INSERT INTO route_attempts (event_id, worker_name, status, attempt_no, idempotency_key)"
        f" VALUES ({event}, 'default', 'failed', 2, 'wrk:default:-:{event}')"
    )
    await scene.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
        f" VALUES ({event}, 'default', 'wrk:default:-:{event}', '{{}}', 'refused')"
    )
    await scene.route("order.*", dry_run=True)
    await scene.rewind()
    await scene.drain()
    assert await scene.decided() == [
        (event, "sent", 1),
        (other, "sent", 1),
        (event, "failed", 2),
        (other, "dry_run", 2),
    ]
