"""A batch of retention reads no more in a past of eight thousand stories than in one of five hundred."""

import pytest

from tests.plans.counters import Reads, counters_of, reads_of
from tests.roles.retention.scene import KEEP, Scene
from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.roles.retention import retention
from tidings.roles.retention.retention import BATCH, Retention

pytestmark = pytest.mark.slow

# For each story and each of its parts a look or two, by an index, and one to remove it.
ROWS_OF_A_STORY = 60
DOUBLINGS = (9, 13)


async def finished_stories(scene: Scene, doublings: int) -> int:
    """As many as two to the power of it, a second apart; returns how many."""
    second = "interval '{} second'" if scene.database.family == "postgresql" else "INTERVAL {} SECOND"
    await scene.event("2020-01-01 10:00:00")
    for number in range(doublings):
        await scene.run(
            "INSERT INTO events (event_type, payload, created_at)"
            f" SELECT event_type, payload, created_at + {second.format(2**number)} FROM events ORDER BY id"
        )
    await scene.run(
        "INSERT INTO route_attempts (event_id, worker_name, route_kind, status, matched, idempotency_key, created_at)"
        " SELECT id, 'default', 'webhook', 'sent', 1, CONCAT('k', id), created_at FROM events"
    )
    await scene.run(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, status, correlation_id, updated_at)"
        " SELECT id, 1, 'InProgress', 'c', created_at FROM events"
    )
    await scene.run(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no, status, applied_at)"
        " SELECT id, 1, updated_at, 1, 'Completed', updated_at FROM webhook_delivery_sagas"
    )
    await scene.run("UPDATE webhook_delivery_sagas SET status = 'Completed'")
    await scene.router(10**9)
    return int(2**doublings)


async def reads_of_a_batch(database: Database, doublings: int) -> Reads:
    scene = await Scene.of(database)
    stories = await finished_stories(scene, doublings)
    middle = f"(SELECT created_at FROM events WHERE id = (SELECT MAX(id) - {stories // 2} FROM events))"
    await scene.run(f"INSERT INTO retention_walks (name, at_time) VALUES ('events', {middle})")

    async def batch(engine: Engine) -> None:
        await Retention(engine, KEEP).step()

    counters = await counters_of(database)
    read = await reads_of(counters, await database.open("retention"), batch)
    await counters.close()
    assert len(await scene.events()) == stories - BATCH
    await database.empty()
    return read


async def test_a_batch_reads_the_same_in_a_long_past_as_in_a_short_one(
    engine: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "PAUSE", 0)
    for doublings in DOUBLINGS:
        read = await reads_of_a_batch(engine, doublings)
        assert read.rows <= ROWS_OF_A_STORY * BATCH, f"2^{doublings} stories: {read}"
