"""An event whose rows the database refuses is set aside whole, alone, and can be routed again later."""

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from tests.roles.router.scene import Scene
from tests.support.fault_proxy import FaultProxy
from tests.support.locks import somebody_waits
from tests.support.poison import plant
from tidings.errors import GateClosed, NotFound, StatementDenied
from tidings.roles.router.replay import Replayed, replay
from tidings.telemetry.notices import EventNotRouted, Notice

pytestmark = pytest.mark.slow

PAYLOAD = '{"b":1,  "a": "Zürich – 東京 😀", "b":2, "n": 1.10}'
Refusal = Callable[[Scene, int], Awaitable[None]]


async def refuse_by_trigger(scene: Scene, event: int) -> None:
    await plant(scene.database, "INSERT", "webhook_delivery_sagas", f"NEW.event_id = {event}")


async def refuse_by_check(scene: Scene, event: int) -> None:
    """MariaDB's INSERT IGNORE passes over it in silence."""
    await scene.sql(f"ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT poison CHECK (event_id <> {event})")


async def refuse_tasks_by_check(scene: Scene, event: int) -> None:
    await scene.route("order.*", target="task", task_biz_type="MAIL")
    await scene.sql(f"ALTER TABLE sys_pending_tasks ADD CONSTRAINT poison CHECK (biz_key <> '{event}')")


async def accept(scene: Scene) -> None:
    await scene.sql("ALTER TABLE webhook_delivery_sagas DROP CONSTRAINT poison")


@pytest.fixture
async def one_refused(breakable: Scene) -> Scene:
    """Two events; the first of them lies in the dead letters."""
    await breakable.subscription()
    event = await breakable.event(payload=PAYLOAD, correlation_id="c-1")
    await breakable.event()
    await refuse_by_check(breakable, event)
    await breakable.drain()
    assert await breakable.decided() == [(2, "sent", 1), (1, "failed", 1)]
    return breakable


async def replayed(scene: Scene, id: int = 1) -> Replayed:
    return await replay(await scene.engine(), id, "test")


@pytest.mark.parametrize("refuse", [refuse_by_trigger, refuse_by_check, refuse_tasks_by_check])
async def test_one_bad_event_in_a_thousand_stops_none_of_the_others(
    proxy: FaultProxy, breakable: Scene, told: list[Notice], refuse: Refusal
) -> None:
    """Seed 004: "one bad event cannot abort the batch; … recorded as a failed attempt and snapshotted"."""
    await breakable.subscription(event_domain="*")
    await breakable.events(700)
    bad = await breakable.event(
        payload=PAYLOAD, correlation_id="c-1", external_id="x-1", event_stream="eu", event_domain="shop"
    )
    await breakable.events(299)
    await refuse(breakable, bad)
    router = await breakable.new_router(engine=await breakable.engine(proxy))
    done = await router.step()
    assert (done.read, done.sagas, done.counts["failed"]) == (1_000, 999, 1)
    assert bad not in {event for event, _ in await breakable.sagas()}
    failures = [one for one in await breakable.attempts() if one["event_id"] == bad]
    assert [(one["status"], one["route_id"], one["attempt_no"]) for one in failures] == [("failed", None, 1)]
    (letter,) = await breakable.letters()
    assert (letter["event_id"], letter["worker_name"], letter["resolved_at"]) == (bad, "default", None)
    assert letter["idempotency_key"] == f"wrk:default:-:{bad}"
    (notice,) = [one for one in told if isinstance(one, EventNotRouted)]
    assert (notice.event_id, notice.correlation_id, notice.error) == (bad, "c-1", letter["error"])
    await assert_whole(breakable, bad, letter["event_snapshot"])
    # Both passes, then two halves for each of the ten steps down to one of a thousand.
    assert len(proxy.seen) <= 2 * 15 + 2 * 10 * 6, proxy.seen
    cursor = await breakable.cursor()
    assert (cursor["position"], cursor["failed_count"]) == (1_000, 1)


async def assert_whole(scene: Scene, event: int, snapshot: str) -> None:
    """Everything the log has of it, and the payload as it was written."""
    assert f'"payload": {PAYLOAD}}}' in snapshot
    (logged,) = await scene.sql(f"SELECT * FROM events WHERE id = {event}")
    kept = json.loads(snapshot)
    assert set(kept) == set(logged.keys())
    assert kept["created_at"] == f"{logged['created_at']:%Y-%m-%dT%H:%M:%S.%fZ}"
    for name in ("id", "event_domain", "event_type", "event_stream", "external_id", "correlation_id"):
        assert kept[name] == logged[name]


async def test_several_bad_events_are_all_found(breakable: Scene) -> None:
    await breakable.subscription()
    await breakable.events(40)
    bad = [1, 17, 18, 40]
    await breakable.sql(
        "ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT poison CHECK (event_id NOT IN (1, 17, 18, 40))"
    )
    await breakable.drain()
    assert [letter["event_id"] for letter in await breakable.letters()] == bad
    assert await breakable.statuses() == {"sent": 36, "failed": 4}


async def test_a_missing_right_is_nobody_s_fault_and_sets_nothing_aside(breakable: Scene) -> None:
    await breakable.subscription()
    await breakable.events(5)
    async with breakable.without_right("INSERT", "webhook_delivery_sagas"):
        before = await breakable.everything()
        with pytest.raises(StatementDenied):
            await (await breakable.new_router()).step()
        assert await breakable.everything() == before
    await breakable.drain(await breakable.new_router())
    assert len(await breakable.sagas()) == 5


async def test_a_replay_sends_as_the_next_attempt_and_resolves(one_refused: Scene) -> None:
    """Seed 004: "re-attempts one dead-lettered event as a fresh iu_route_attempt (attempt_no incremented)"."""
    await accept(one_refused)
    done = await replayed(one_refused)
    assert (done.event_id, done.statuses, done.is_resolved, done.was_resolved) == (1, ("sent",), True, False)
    assert await one_refused.decided() == [(2, "sent", 1), (1, "failed", 1), (1, "sent", 2)]
    assert await one_refused.sagas() == [(1, 1), (2, 1)]
    (letter,) = await one_refused.letters()
    assert letter["resolution"] == "sent"
    assert letter["resolved_at"] is not None
    detail = {"event_id": 1, "statuses": ["sent"], "attempt_no": 2}
    assert await one_refused.audited() == [("route_dead_letter.replayed", "route_dead_letter:1", detail)]


async def test_a_replay_of_what_is_resolved_says_so_and_does_nothing(one_refused: Scene) -> None:
    await accept(one_refused)
    await replayed(one_refused)
    before = await one_refused.everything()
    again = await replayed(one_refused)
    assert (again.was_resolved, again.is_resolved, again.statuses) == (True, True, ())
    assert await one_refused.everything() == before


@pytest.mark.parametrize("closed", ["routing", "router:default"])
async def test_a_replay_obeys_the_gates(one_refused: Scene, closed: str) -> None:
    await accept(one_refused)
    await one_refused.set_gate(closed, False)
    before = await one_refused.everything()
    with pytest.raises(GateClosed, match=closed):
        await replayed(one_refused)
    assert await one_refused.everything() == before


async def test_a_replay_that_is_refused_again_is_recorded_and_stays(one_refused: Scene) -> None:
    done = await replayed(one_refused)
    assert (done.statuses, done.is_resolved) == (("failed",), False)
    assert "poison" in done.error or "took no sagas" in done.error
    assert [one for one in await one_refused.decided() if one[0] == 1] == [(1, "failed", 1), (1, "failed", 2)]
    assert (await one_refused.letters())[0]["resolved_at"] is None
    assert [action for action, *_ in await one_refused.audited()] == ["route_dead_letter.replayed"]


async def test_a_dry_run_resolves_and_a_disabled_or_missing_route_does_not(one_refused: Scene) -> None:
    await one_refused.sql("UPDATE routes SET enabled = false")
    assert (await replayed(one_refused)).statuses == ("disabled",)
    await one_refused.sql("DELETE FROM routes")
    assert (await replayed(one_refused)).statuses == ("skipped",)
    assert (await one_refused.letters())[0]["resolved_at"] is None
    await one_refused.route(dry_run=True)
    assert (await replayed(one_refused)).is_resolved
    assert (await one_refused.letters())[0]["resolution"] == "dry_run"
    mine = [one for one in await one_refused.decided() if one[0] == 1]
    assert mine == [(1, "failed", 1), (1, "disabled", 2), (1, "skipped", 3), (1, "dry_run", 4)]
    assert await one_refused.sagas() == [(2, 1)]


async def test_replays_at_the_same_time_do_it_once(one_refused: Scene) -> None:
    await accept(one_refused)
    done = await asyncio.gather(*(replayed(one_refused) for _ in range(4)))
    assert sorted(one.was_resolved for one in done) == [False, True, True, True]
    assert [one for one in await one_refused.decided() if one[0] == 1] == [(1, "failed", 1), (1, "sent", 2)]
    assert len(await one_refused.audited()) == 1


async def test_a_replay_waits_for_the_pass_that_is_under_way(one_refused: Scene) -> None:
    await accept(one_refused)
    pass_under_way = await one_refused.session()
    await pass_under_way.run("BEGIN")
    await pass_under_way.run("SELECT * FROM route_worker_cursors FOR UPDATE")
    replaying = asyncio.ensure_future(replayed(one_refused))
    await somebody_waits(one_refused.database)
    assert not replaying.done()
    await pass_under_way.run("COMMIT")
    assert (await replaying).is_resolved


async def test_a_dead_letter_that_does_not_exist_is_not_found(breakable: Scene) -> None:
    with pytest.raises(NotFound, match="99"):
        await replayed(breakable, 99)


async def test_a_rewind_leaves_it_to_the_replay_and_does_nothing_after_it(one_refused: Scene) -> None:
    await accept(one_refused)
    await one_refused.rewind()
    await one_refused.drain()
    assert await one_refused.sagas() == [(2, 1)]
    await replayed(one_refused)
    await one_refused.rewind()
    await one_refused.drain()
    assert await one_refused.sagas() == [(1, 1), (2, 1)]
    assert len(await one_refused.attempts()) == 3


async def test_what_is_refused_again_after_it_was_resolved_waits_again(one_refused: Scene) -> None:
    """By a dry run it was resolved; for real the database still refuses it."""
    await one_refused.sql("UPDATE routes SET dry_run = true")
    assert (await replayed(one_refused)).is_resolved
    await one_refused.sql("UPDATE routes SET dry_run = false")
    await one_refused.rewind()
    await one_refused.drain()
    (letter,) = await one_refused.letters()
    assert (letter["resolved_at"], letter["resolution"]) == (None, None)
    mine = [one for one in await one_refused.decided() if one[0] == 1]
    assert mine == [(1, "failed", 1), (1, "dry_run", 2), (1, "failed", 3)]


async def test_the_router_can_delete_no_dead_letter(one_refused: Scene) -> None:
    """Seed 004: "resolved via resolved_at+resolution, never DELETEd"."""
    for role in ("event_router", "schema_owner"):
        with pytest.raises(Exception, match=r"(?i)denied|never deleted"):
            await one_refused.sql("DELETE FROM route_dead_letters", role=role)
    assert await one_refused.count("route_dead_letters") == 1


async def test_a_running_router_goes_on_beside_bad_events(breakable: Scene) -> None:
    await breakable.subscription()
    await breakable.sql("ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT poison CHECK (event_id % 10 <> 0)")
    for _ in range(4):
        await breakable.events(25)
    await breakable.drain(await breakable.new_router(batch=25))
    assert await breakable.statuses() == {"sent": 90, "failed": 10}
