"""Retention (ruling 17): whole finished stories, older than the setting, and never anything else."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.roles.retention.scene import LONG_AGO, RECENTLY, TABLES, Scene
from tests.support.locks import somebody_waits
from tests.support.sessions import connect
from tidings.roles.dead_letters.requeueing import requeue
from tidings.roles.observer.reconciling import reconcile
from tidings.roles.retention.operations import RetentionOperations
from tidings.telemetry.notices import Notice, RowSetAside, StoriesRemoved

OF_A_FINISHED_ONE = {
    "events": 1,
    "sent": 1,
    "attempts": 2,
    "wanted_deliveries": 2,
    "sagas": 3,
    "delivered": 2,
    "jobs": 4,
    "dead_letters": 1,
    "route_dead_letters": 1,
}


async def test_it_is_off_by_default(scene: Scene) -> None:
    await scene.routed_up_to(await scene.finished())
    before = await scene.counts()
    await scene.remove(keep=None)
    assert await scene.counts() == before


async def test_a_finished_story_goes_whole_and_is_counted(scene: Scene, told: list[Notice]) -> None:
    event = await scene.finished()
    await scene.routed_up_to(event)
    await scene.remove()
    assert await scene.counts() == dict.fromkeys(TABLES, 0)
    assert await scene.totals() == {LONG_AGO[:10]: OF_A_FINISHED_ONE}
    removed = [notice for notice in told if isinstance(notice, StoriesRemoved)]
    assert removed == [StoriesRemoved(events=1, sagas=3, jobs=4, tasks=0)]


async def test_totals_grow_by_day(scene: Scene) -> None:
    days = ["2020-01-01", "2020-01-02", "2020-01-01"]
    last = [await scene.finished(f"{day} 23:59:59.999999") for day in days][-1]
    await scene.routed_up_to(last)
    await scene.remove(batch=1)
    totals = await scene.totals()
    assert {day: counts["events"] for day, counts in totals.items()} == {"2020-01-01": 2, "2020-01-02": 1}
    assert totals["2020-01-01"] == {name: 2 * count for name, count in OF_A_FINISHED_ONE.items()}


async def test_what_is_younger_than_the_setting_stays(scene: Scene) -> None:
    young = await scene.finished(at=RECENTLY)
    old = await scene.finished()
    await scene.routed_up_to(old)
    await scene.remove()
    assert await scene.events() == [young]


Doing = Callable[[Scene, int], Awaitable[object]]
UNFINISHED: dict[str, Doing] = {
    "no router has come so far": lambda scene, event: scene.router(event - 1),
    "a router knows its place by it": lambda scene, event: scene.router(event, event),
    "there is no router": lambda scene, event: asyncio.sleep(0),
    "the router of its domain is behind": lambda scene, event: scene.router(event - 1, domain="default", name="own"),
    "it lies in a hole": lambda scene, event: scene.run(
        f"INSERT INTO route_holes (worker_name, lo, hi) VALUES ('default', {event}, {event + 3})"
    ),
    "it was decided lately": lambda scene, event: scene.attempt(event, "disabled", at=RECENTLY),
    "a routing dead letter waits": lambda scene, event: scene.run(
        f"UPDATE route_dead_letters SET resolved_at = NULL WHERE event_id = {event}"
    ),
    "it was resolved lately": lambda scene, event: scene.run(
        f"UPDATE route_dead_letters SET resolved_at = '{RECENTLY}' WHERE event_id = {event}"
    ),
    "a saga is pending": lambda scene, event: scene.saga(event, "Pending", subscription=3, jobs=0),
    "a saga is in progress": lambda scene, event: scene.saga(event, "InProgress", subscription=3),
    "a saga waits for a retry": lambda scene, event: scene.saga(event, "PendingRetry", subscription=3),
    "a saga ended lately": lambda scene, event: scene.saga(event, subscription=3, at=RECENTLY),
    "a result was not taken in": lambda scene, event: scene.saga(event, subscription=3, applied=False),
}
WITHOUT_ROUTER = ("no router has come so far", "a router knows its place by it", "there is no router")


@pytest.mark.parametrize("what", UNFINISHED)
async def test_a_story_with_anything_unfinished_stays_whole(scene: Scene, what: str) -> None:
    """H8: retention never removes an event whose saga is not terminal; nor anything else that is not."""
    event = await scene.finished()
    if what not in WITHOUT_ROUTER:
        await scene.routed_up_to(event)
    await UNFINISHED[what](scene, event)
    before = await scene.counts()
    await scene.remove()
    assert await scene.counts() == before
    assert await scene.totals() == {}


async def test_an_event_that_nobody_has_decided_about_stays(scene: Scene) -> None:
    event = await scene.event()
    await scene.routed_up_to(event)
    await scene.remove()
    assert await scene.events() == [event]


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
async def test_an_event_stays_as_long_as_its_task_is_not_in_the_history(scene: Scene, status: int) -> None:
    event = await scene.event()
    await scene.attempt(event, kind="task")
    await scene.routed_up_to(event)
    await scene.task("other", "alarm")
    await scene.task(event, "report", status)
    await scene.remove()
    assert await scene.events() == [event]
    await scene.run("DELETE FROM sys_pending_tasks WHERE biz_type = 'report'")
    await scene.run("UPDATE retention_walks SET began_at = '2020-01-01'")
    await scene.remove()
    await scene.remove()
    assert await scene.events() == []
    assert (await scene.totals())[LONG_AGO[:10]] == {"events": 1, "sent": 1, "attempts": 1, "wanted_tasks": 1}


async def test_the_finished_go_and_the_others_stay_however_they_are_mixed(scene: Scene) -> None:
    finished, open_ones = [], []
    for number in range(10):
        event = await scene.finished()
        if number % 3:
            finished.append(event)
        else:
            await scene.saga(event, "PendingRetry", subscription=3)
            open_ones.append(event)
    await scene.routed_up_to(event)
    await scene.remove(batch=3)
    assert await scene.events() == open_ones
    assert await scene.orphans() == []
    assert (await scene.totals())[LONG_AGO[:10]]["events"] == len(finished)


async def test_a_story_is_not_split_however_many_sagas_it_has(scene: Scene) -> None:
    event = await scene.event()
    await scene.attempt(event, matched=12)
    for subscription in range(1, 13):
        await scene.saga(event, subscription=subscription)
    second = await scene.finished()
    await scene.routed_up_to(second)
    one = await scene.retention(most_sagas=5)
    await one.step()
    assert await scene.events() == [second]
    assert await scene.orphans() == []


async def test_what_was_unfinished_is_looked_at_again_in_the_next_round_and_not_before(scene: Scene) -> None:
    """Also by a process that was started anew: the place is remembered by the database."""
    event = await scene.finished()
    saga = await scene.saga(event, "PendingRetry", subscription=3)
    await scene.routed_up_to(event)
    await scene.remove()
    await scene.run(f"UPDATE webhook_delivery_sagas SET status = 'Completed' WHERE id = {saga}")
    await scene.remove()
    assert await scene.events() == [event]
    newer = await scene.finished("2020-02-01")
    await scene.run(f"UPDATE route_worker_cursors SET position = {newer + 1}, last_event_id = NULL")
    await scene.remove()
    assert await scene.events() == [event]
    await scene.run("UPDATE retention_walks SET began_at = '2020-01-01'")
    await scene.remove()
    await scene.remove()
    assert await scene.events() == []


async def test_events_of_the_same_moment_are_all_looked_at(scene: Scene) -> None:
    """One statement of a producer gives the same time to all of its events."""
    events = [await scene.finished() for _ in range(7)]
    await scene.routed_up_to(events[-1])
    await scene.remove(batch=2)
    assert await scene.events() == []


async def test_two_at_once_remove_each_story_once(scene: Scene) -> None:
    for _ in range(12):
        event = await scene.finished()
    await scene.routed_up_to(event)
    await asyncio.gather(*(scene.remove(batch=2) for _ in range(3)))
    await scene.remove()
    assert await scene.counts() == dict.fromkeys(TABLES, 0)
    assert await scene.totals() == {LONG_AGO[:10]: {name: 12 * count for name, count in OF_A_FINISHED_ONE.items()}}


async def test_a_requeue_that_came_first_keeps_the_story(scene: Scene, told: list[Notice]) -> None:
    """The operator has made the next saga and not yet committed when retention wants to remove the old one."""
    dead, other = await scene.event(), await scene.finished()
    await scene.attempt(dead)
    await scene.saga(dead, "DeadLettered")
    await scene.routed_up_to(other)
    letter = await scene.value(f"SELECT id FROM dead_letters WHERE event_id = {dead}")
    operator = await connect(scene.database.url("dead_letter_operator"))
    await operator.run("BEGIN")
    is_postgresql = scene.database.family == "postgresql"
    call = "SELECT * FROM requeue_dead_letters(ARRAY[{}])" if is_postgresql else "CALL requeue_dead_letters('[{}]')"
    await operator.run(call.format(letter))
    removing = asyncio.create_task(scene.remove())
    await somebody_waits(scene.database)
    await operator.run("COMMIT")
    await removing
    await operator.close()
    assert [notice.row for notice in told if isinstance(notice, RowSetAside)] == [f"event:{dead}"]
    assert await scene.events() == [dead]
    assert await scene.orphans() == []
    statuses = await scene.run("SELECT generation, status FROM webhook_delivery_sagas ORDER BY generation")
    assert statuses == [(0, "DeadLettered"), (1, "Pending")]


async def test_a_requeue_that_came_second_finds_nothing(scene: Scene) -> None:
    event = await scene.event()
    await scene.attempt(event)
    saga = await scene.saga(event, "DeadLettered")
    letter = await scene.value("SELECT id FROM dead_letters")
    engine = await scene.database.open("retention")
    operator = await scene.database.open("dead_letter_operator")
    async with engine.transaction() as transaction:
        await RetentionOperations(transaction, engine.dialect).remove([event], [saga])
        asking = asyncio.create_task(requeue(operator, [letter], "test"))
        await somebody_waits(scene.database)
    (asked,) = await asking
    assert asked.outcome == "not_found"
    assert await scene.counts() == dict.fromkeys(TABLES, 0)


async def test_afterwards_reconcile_finds_nothing_whose_event_is_gone(scene: Scene) -> None:
    for _ in range(4):
        event = await scene.finished()
    await scene.saga(event, "Pending", subscription=3, jobs=0)
    await scene.routed_up_to(event)
    await scene.remove()
    observer = await scene.database.open("observer")
    strays = [one async for ledger in reconcile(observer) for one in ledger.differences if "not in the log" in one.what]
    assert strays == []


async def test_old_tasks_go_from_the_history_and_are_counted(scene: Scene) -> None:
    await scene.archived(1, "order-7")
    await scene.archived(2, "999999999999999999999")
    await scene.archived(3, "order-8", at=RECENTLY)
    await scene.remove(batch=1)
    assert await scene.run("SELECT id FROM sys_pending_tasks_history") == [(3,)]
    assert await scene.totals() == {LONG_AGO[:10]: {"tasks": 2}}


async def test_the_task_of_an_event_stays_in_the_history_as_long_as_the_event(scene: Scene) -> None:
    """Otherwise `reconcile` would miss it."""
    event = await scene.event()
    await scene.attempt(event, kind="task")
    await scene.saga(event, "Pending", jobs=0)
    await scene.archived(1, event)
    await scene.archived(2, event + 1)
    await scene.routed_up_to(event)
    await scene.remove()
    assert await scene.run("SELECT id FROM sys_pending_tasks_history") == [(1,)]
    await scene.run("UPDATE webhook_delivery_sagas SET status = 'Completed', updated_at = '2020-01-01'")
    for _ in range(2):
        await scene.run("UPDATE retention_walks SET began_at = '2020-01-01'")
        await scene.remove()
        await scene.remove()
    assert await scene.events() == []
    assert await scene.run("SELECT id FROM sys_pending_tasks_history") == []


async def test_no_router_goes_back_while_stories_are_removed(scene: Scene) -> None:
    """A rewound router reads the past: it waits until what goes is gone, and finds all of a story or nothing."""
    event = await scene.finished()
    await scene.routed_up_to(event)
    engine = await scene.database.open("retention")
    async with engine.transaction() as transaction:
        await RetentionOperations(transaction, engine.dialect).hold_cursors()
        going_back = asyncio.create_task(scene.run("UPDATE route_worker_cursors SET position = 0"))
        await somebody_waits(scene.database)
        assert not going_back.done()
    await going_back
