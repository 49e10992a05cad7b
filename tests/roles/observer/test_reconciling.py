"""The ledger adds up at every moment of a sound system, and whatever is damaged is named."""

import json
from pathlib import Path

import pytest

from tests.roles.observer.world import World, without_guards
from tests.support.commands import run
from tests.support.database import Database
from tidings.model.ledger import Ledger

EVENTS = 4

# What is done to a ledger that added up, what is then at odds, and in which words.
DAMAGES = {
    "a saga is gone": (
        "DELETE FROM webhook_delivery_sagas WHERE id = 1",
        "event:1",
        "routers wrote down 2 deliveries, and there are 1 sagas",
    ),
    "a saga too many": (
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id) VALUES (2, 77, 'c')",
        "event:2",
        "routers wrote down 2 deliveries, and there are 3 sagas",
    ),
    "a decision is gone": (
        "DELETE FROM route_attempts WHERE event_id = 3",
        "event:3",
        "routers wrote down 0 deliveries, and there are 2 sagas",
    ),
    "an event is gone": ("DELETE FROM events WHERE id = 4", "saga:7", "delivers event 4, which is not in the log"),
    "a success is gone": (
        "DELETE FROM webhook_delivery_jobs WHERE saga_id = 1",
        "saga:1",
        "is Completed, and has 0 successful jobs that were taken in instead of 1",
    ),
    "a success is there twice": (
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no, status, applied_at)"
        " SELECT id, subscription_id, updated_at, 2, 'Completed', updated_at FROM webhook_delivery_sagas WHERE id = 3",
        "saga:3",
        "counts 1 attempts, and 2 results were taken in",
    ),
    "a dead letter is gone": (
        "DELETE FROM dead_letters WHERE saga_id = 2",
        "saga:2",
        "is DeadLettered, and has 0 dead letters instead of 1",
    ),
    "a dead letter too many": (
        "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot) VALUES (5, 3, 1, '{}')",
        "saga:5",
        "is Completed, and has 1 dead letters instead of 0",
    ),
    "a result was not taken in": (
        "UPDATE webhook_delivery_jobs SET applied_at = NULL WHERE saga_id = 6",
        "saga:6",
        "is DeadLettered, and has 1 jobs that are under way or not taken in instead of 0",
    ),
    "a saga is stuck": (
        "UPDATE webhook_delivery_sagas SET status = 'InProgress' WHERE id = 8",
        "saga:8",
        "is InProgress, and has 0 jobs that are under way or not taken in instead of 1",
    ),
    "a generation is missing": (
        "UPDATE webhook_delivery_sagas SET generation = 2 WHERE id = 8",
        "saga:8",
        "is a next generation, and the one before it is not there",
    ),
    "a task is in both tables": (
        "INSERT INTO sys_pending_tasks_history (id, biz_type, biz_key) SELECT id, biz_type, biz_key"
        " FROM sys_pending_tasks",
        "task:1",
        "(MAIL, 1) waits, and is in the history too",
    ),
    "a task was never made": (
        "DELETE FROM sys_pending_tasks WHERE biz_key = '3'",
        "event:3",
        "routers wrote down a task MAIL, which neither waits nor is in the history",
    ),
}


async def test_a_ledger_adds_up_at_every_moment(engine: Database) -> None:
    world = World(engine)

    async def sound() -> Ledger:
        ledger = await world.ledger()
        assert ledger.adds_up
        return ledger

    await world.set()
    assert (await sound()).accepted == 0
    await world.publish(EVENTS)
    assert (await sound()).events == {"unrouted": EVENTS}
    await world.route()
    routed = await sound()
    assert (routed.events, routed.wanted, routed.deliveries) == (
        {"sent": EVENTS},
        {"webhook": 2 * EVENTS},
        {"pending": 2 * EVENTS},
    )
    await world.advance()
    await sound()
    await world.report()
    await sound()
    await world.advance()
    await world.sql("UPDATE subscriptions SET paused = true WHERE id = 1")
    await world.publish()
    await world.route()
    assert (await sound()).deliveries == {"delivered": EVENTS, "dead": EVENTS, "held": 1, "pending": 1}


async def test_each_fate_of_an_event_is_told_apart(engine: Database) -> None:
    world = World(engine)
    await world.set()
    await world.sql("INSERT INTO routes (event_type, target, enabled) VALUES ('off', 'webhook', false)")
    await world.sql("INSERT INTO routes (event_type, target, dry_run) VALUES ('dry', 'webhook', true)")
    await world.sql("UPDATE routes SET event_type = 'order.paid' WHERE id = 1")
    for event_type in ("order.paid", "off", "dry", "other"):
        await world.publish(1, event_type)
    await world.route()
    await world.publish()
    ledger = await world.ledger()
    assert ledger.events == {"sent": 1, "disabled": 1, "dry_run": 1, "skipped": 1, "unrouted": 1}
    assert ledger.adds_up


async def test_what_retention_has_removed_is_told_apart(engine: Database) -> None:
    for day, events in (("2026-01-01", 3), ("2026-01-02", 4)):
        await engine.sql(
            "INSERT INTO retention_totals (day, events, sent, wanted_deliveries, delivered, dead)"
            f" VALUES ('{day}', {events}, {events}, {2 * events}, {events}, {events})"
        )
    ledger = await World(engine).ledger()
    assert ledger.removed == {"events": 7, "wanted": 14, "delivered": 7, "dead": 7}
    assert (ledger.accepted, ledger.adds_up) == (0, True)


@pytest.mark.slow
async def test_every_kind_of_damage_is_named(throwaway: Database) -> None:
    world = World(throwaway)
    await without_guards(throwaway)
    unnamed = {}
    for name, (damage, subject, words) in DAMAGES.items():
        await world.set()
        await world.sql("INSERT INTO routes (event_type, target, task_biz_type) VALUES ('order.*', 'task', 'MAIL')")
        await world.deliver(EVENTS)
        sound = await world.ledger()
        await world.sql(damage)
        found = await world.ledger()
        if not sound.adds_up or not any(one.subject == subject and words in one.what for one in found.differences):
            unnamed[name] = (sound.differences, found.differences)
        await throwaway.empty()
    assert not unnamed


@pytest.mark.slow
async def test_the_command_ends_with_1_and_names_the_event(throwaway: Database, tmp_path: Path) -> None:
    world = World(throwaway)
    await world.set()
    await world.deliver(EVENTS)
    environment = throwaway.environment()
    assert "It adds up." in run("reconcile", cwd=tmp_path, env=environment).stdout
    await without_guards(throwaway)
    await world.sql("DELETE FROM webhook_delivery_sagas WHERE id = 1")
    damaged = run("reconcile", cwd=tmp_path, exit=1, env=environment)
    assert "event:1 routers wrote down 2 deliveries" in damaged.stdout
    told = json.loads(run("reconcile", "--json", cwd=tmp_path, exit=1, env=environment).stdout)
    assert (told["accepted"], told["adds_up"], told["differences"][0]["event_id"]) == (EVENTS, False, 1)
