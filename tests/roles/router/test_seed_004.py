"""What seed 004 says of the log, of the cursor and of a pass, each sentence as it can be seen in the tables."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.roles.router.scene import Scene
from tests.support.commands import run
from tests.support.database import Database
from tidings.errors import StatementFailed
from tidings.roles.router.passes import Outcome
from tidings.roles.router.replay import replay
from tidings.roles.routes import routers as admin

pytestmark = pytest.mark.slow


async def logged(scene: Scene) -> list[dict[str, Any]]:
    return [dict(row) for row in await scene.sql("SELECT * FROM events ORDER BY id")]


async def test_the_log_has_no_column_for_what_became_of_an_event(scene: Scene) -> None:
    """Seed 004: "It has no delivery-state columns — no delivered_at, no processed_at."."""
    await scene.events(1)
    (event,) = await logged(scene)
    origin = {"id", "event_domain", "event_type", "event_stream", "external_id", "correlation_id", "created_at"}
    assert set(event) == origin | {"payload"}


async def test_routing_leaves_every_row_of_the_log_as_it_was(scene: Scene) -> None:
    """Seed 004: "It is not a work queue. A consumer therefore cannot mark rows"."""
    await scene.subscription()
    await scene.events(3)
    before = await logged(scene)
    await scene.drain()
    assert await scene.count("webhook_delivery_sagas") == 3
    assert await logged(scene) == before


async def test_nothing_is_routed_until_a_pass_is_called(scene: Scene) -> None:
    """Seed 004: "invoked, transaction-scoped": no trigger and no job of the server does a router's work."""
    await scene.subscription()
    await scene.events(3)
    assert (await scene.count("route_attempts"), await scene.count("webhook_delivery_sagas")) == (0, 0)
    assert (await scene.count("route_worker_cursors"), await scene.count("sys_pending_tasks")) == (0, 0)


async def test_a_pass_takes_no_more_events_than_its_batch_and_the_next_one_goes_on(scene: Scene) -> None:
    """Seed 004: "fn_iu_route_worker_run(p_worker_name, p_batch_limit) — one transactional pass"."""
    await scene.drain()
    events = await scene.events(5)
    router = await scene.new_router(batch=2)
    read = [(await router.step()).read for _ in range(4)]
    assert read == [2, 2, 1, 0]
    assert [attempt["event_id"] for attempt in await scene.attempts()] == events


async def test_each_router_has_one_row_with_its_own_domain_and_place(scene: Scene) -> None:
    """Seed 004: "one row per named worker", "event_domain scope"; "it must track its own position"."""
    await scene.drain()
    await admin.add(await scene.database.open("route_admin"), "billing", "billing", "test")
    await scene.open_gates("billing")
    (ours,) = await scene.events(1)
    (theirs,) = await scene.events(1, domain="billing")
    await scene.drain()
    assert [attempt["event_id"] for attempt in await scene.attempts()] == [ours]
    assert (await scene.cursor())["position"] == theirs
    assert (await scene.cursor("billing"))["position"] == 0
    await scene.drain(await scene.new_router("billing"))
    assert [(a["event_id"], a["worker_name"]) for a in await scene.attempts()] == [
        (ours, "default"),
        (theirs, "billing"),
    ]
    assert await scene.count("route_worker_cursors") == 2


async def test_a_cursor_counts_its_runs_and_what_came_of_them_and_tells_of_the_last(scene: Scene) -> None:
    """Seed 004: "run counters, last_run_summary"."""
    await scene.subscription("order.*")
    await scene.route("order.dry", dry_run=True)
    await scene.route("order.off", enabled=False)
    await scene.drain()
    for event_type, count in (("order.paid", 4), ("order.dry", 3), ("order.off", 2), ("other", 1)):
        await scene.events(count, event_type)
    before = await scene.cursor()
    done = await scene.router.step()
    after = await scene.cursor()
    counts = {name: after[f"{name}_count"] for name in ("sent", "dry_run", "disabled", "skipped", "failed")}
    assert counts == {"sent": 4, "dry_run": 3, "disabled": 2, "skipped": 1, "failed": 0} == done.counts
    assert after["runs"] == before["runs"] + 1
    summary = json.loads(after["last_run_summary"])
    assert (summary["read"], summary["sagas"], summary["dry_run"]) == (10, 4, 3)


async def test_a_second_run_reads_nothing_that_was_passed(scene: Scene) -> None:
    """Seed 004: "Cursor — a re-run reads nothing already passed."."""
    await scene.events(3)
    await scene.drain()
    done = await (await scene.new_router()).step()
    assert (done.outcome, done.read) == (Outcome.IDLE, 0)
    assert await scene.count("route_attempts") == 3


async def test_a_key_is_made_of_router_route_and_event_alone(scene: Scene) -> None:
    """Seed 004: "Deterministic key iu_wrk:{worker}:{route}:{event_id}." Ruling 19 drops `iu_`."""
    route = await scene.route("order.paid")
    (sent,) = await scene.events(1, "order.paid")
    await scene.sql("DELETE FROM routes WHERE event_type = '*'")
    (skipped,) = await scene.events(1, "other")
    await scene.drain()
    keys = [attempt["idempotency_key"] for attempt in await scene.attempts()]
    assert keys == [f"wrk:default:{route}:{sent}", f"wrk:default:-:{skipped}"]


async def test_rows_of_the_log_that_somebody_has_locked_are_routed_all_the_same(scene: Scene) -> None:
    """Seed 004 claims with "FOR UPDATE OF eo SKIP LOCKED"; we lock the cursor instead, so nothing is passed over."""
    await scene.subscription()
    await scene.route("*", target="task", task_biz_type="REPORT")
    await scene.drain()
    events = await scene.events(3)
    other = await scene.session()
    await other.run("BEGIN")
    await other.run("SELECT id FROM events FOR UPDATE")
    await scene.drain()
    assert [event for event, _ in await scene.sagas()] == events
    assert await scene.count("sys_pending_tasks") == 3


async def test_the_position_never_goes_back_for_what_was_committed_late(scene: Scene) -> None:
    """Seed 004: "The keyset cursor advances monotonically." What comes late is routed without moving it."""
    await scene.drain()
    late = await scene.late_writer()
    (seen,) = await scene.events(1)
    await scene.drain()
    before = (await scene.cursor())["position"]
    await late.run("COMMIT")
    done = await scene.router.step()
    assert (done.read, done.late) == (1, 1)
    assert before == (await scene.cursor())["position"] == seen
    assert [attempt["event_id"] for attempt in await scene.attempts()] == [seen, seen - 1]


async def test_a_route_that_is_no_dry_run_delivers_and_one_that_is_records_only(scene: Scene) -> None:
    """Seed 004, "Delivery seam": "The worker catches it and dead-letters the event."; ruling 14 builds the seam."""
    await scene.subscription("order.*")
    await scene.route("order.dry", dry_run=True)
    await scene.route("order.dry", target="task", task_biz_type="DRY", dry_run=True)
    await scene.route("order.paid", target="task", task_biz_type="REPORT")
    (sent,) = await scene.events(1, "order.paid")
    await scene.events(1, "order.dry")
    await scene.drain()
    assert [event for event, _ in await scene.sagas()] == [sent]
    (task,) = await scene.sql("SELECT biz_type, biz_key FROM sys_pending_tasks")
    assert (task["biz_type"], task["biz_key"]) == ("REPORT", str(sent))
    assert await scene.statuses() == {"sent": 2, "dry_run": 2}
    assert await scene.count("route_dead_letters") == 0


async def test_a_dead_letter_is_replayed_from_its_snapshot_when_the_log_is_gone(breakable: Scene) -> None:
    """Seed 004: "Full event_snapshot so it is replayable without re-reading event_outbox."."""
    subscription = await breakable.subscription()
    await bury_one(breakable)
    (poisoned,) = await logged(breakable)
    (letter,) = await breakable.sql("SELECT id, event_id, event_snapshot FROM route_dead_letters")
    assert letter["event_id"] == poisoned["id"]
    assert '"payload": {"b" : 1.0}' in letter["event_snapshot"]
    snapshot = json.loads(letter["event_snapshot"])
    assert {**snapshot, "payload": 0, "created_at": 0} == {**poisoned, "payload": 0, "created_at": 0}
    await lose_the_log(breakable)
    assert await logged(breakable) == []
    done = await replay(await breakable.engine(), letter["id"], "test")
    assert (done.statuses, done.is_resolved) == (("sent",), True)
    assert await breakable.sagas() == [(poisoned["id"], subscription)]


async def lose_the_log(scene: Scene) -> None:
    """Past the guards, which only a superuser can."""
    admin_engine = await scene.database.open("admin")
    is_mysql = scene.database.family == "mysql"
    async with admin_engine.bare_session() as session:
        await session.command("SET FOREIGN_KEY_CHECKS = 0" if is_mysql else "SET session_replication_role = replica")
        await session.command("TRUNCATE TABLE events")


async def test_a_migration_opens_no_gate(throwaway: Database) -> None:
    """Seed 004, Files: "worker gate false"."""
    assert await throwaway.value("SELECT COUNT(*) FROM gates WHERE is_open") == 0


async def test_each_decision_is_written_down_once(bare: Scene) -> None:
    """Seed 004: "write exactly one iu_route_attempt: dry_run … / disabled / skipped", for each decision."""
    await bare.open_gates()
    await bare.subscription()
    await bare.route("dry", dry_run=True)
    await bare.route("off", enabled=False)
    await bare.route("off.dry", enabled=False, dry_run=True)
    await bare.route("both")
    await bare.route("both", target="task", task_biz_type="REPORT")
    for event_type in ("dry", "off", "off.dry", "none", "both"):
        await bare.events(1, event_type)
    await bare.drain()
    decided = [(attempt["route_kind"], attempt["status"], attempt["reason"]) for attempt in await bare.attempts()]
    assert decided == [
        ("webhook", "dry_run", ""),
        ("webhook", "disabled", "route_disabled"),
        ("webhook", "disabled", "route_disabled"),
        ("", "skipped", "no_route"),
        ("webhook", "sent", ""),
        ("task", "sent", ""),
    ]


async def test_the_same_attempt_can_not_be_stored_twice(scene: Scene) -> None:
    """Seed 004: "UNIQUE (idempotency_key, attempt_no)", whoever writes."""
    text = "INSERT INTO route_attempts (event_id, worker_name, idempotency_key, attempt_no, status) VALUES "
    await scene.sql(text + "(1, 'w', 'k', 1, 'skipped'), (1, 'w', 'k', 2, 'skipped')")
    with pytest.raises(StatementFailed, match=r"(?i)duplicate"):
        await scene.sql(text + "(1, 'w', 'k', 2, 'sent')")


async def test_a_key_has_one_dead_letter(scene: Scene) -> None:
    """Seed 004: "idempotency_key UNIQUE", whoever writes."""
    text = "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error) VALUES "
    await scene.sql(text + "(1, 'w', 'k', '{}', '')")
    with pytest.raises(StatementFailed, match=r"(?i)duplicate"):
        await scene.sql(text + "(2, 'w', 'k', '{}', '')")


async def test_doctor_looks_and_changes_nothing(breakable: Scene, tmp_path: Path) -> None:
    """Seed 004, Files: "read-only verify"."""
    await breakable.subscription()
    await bury_one(breakable)
    before = await breakable.everything()
    run("doctor", cwd=tmp_path, exit=1, env=breakable.database.environment())
    assert await breakable.everything() == before


async def bury_one(scene: Scene) -> None:
    """An event that could not be routed when its turn came, and could be now."""
    await scene.sql("ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT poison CHECK (correlation_id <> 'poison')")
    await scene.sql(
        "INSERT INTO events (event_type, external_id, payload, correlation_id)"
        " VALUES ('order.paid', 'x', '{\"b\" : 1.0}', 'poison')"
    )
    await scene.drain()
    await scene.sql("ALTER TABLE webhook_delivery_sagas DROP CONSTRAINT poison")
