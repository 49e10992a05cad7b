"""The five stories of phase 8, with real processes and `kill -9`; in the end the independent checker has its say."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.scenarios.delivery.stage import Committed, Stage
from tests.scenarios.delivery.zombies import LATE
from tests.support.commands import run
from tests.support.fault_proxy import KILL, Fault, FaultProxy, When
from tests.support.processes import tidings
from tests.support.receiver import Answer
from tests.support.waiting import eventually
from tidings.model.dead_letter import RequeueOutcome
from tidings.roles.dead_letters.requeueing import requeue

pytestmark = pytest.mark.slow

EVERYTHING = ("router", "orchestrator", "worker", "cleaner")


async def sagas(stage: Stage) -> list[tuple[int, int, str, int]]:
    rows = await stage.database.sql("SELECT * FROM webhook_delivery_sagas ORDER BY id")
    return [(row["event_id"], row["generation"], row["status"], row["attempt_count"]) for row in rows]


async def test_duplicate_events_are_one_event_and_one_delivery(stage: Stage, tmp_path: Path) -> None:
    """The same external id is published by a process that is killed after the commit, and then again and again."""
    await stage.subscriber("/hook")
    (event,) = await stage.publish()
    with FaultProxy(stage.database.server.port, stage.database.kind) as proxy:
        proxied = proxy.url(stage.database.url("event_ingest_writer"))
        words = ("publish", "order.paid", event.payload, "--external-id", "order-1", "--correlation-id", "twice")
        environment = stage.environment() | {"TIDINGS_DATABASE_URL_EVENT_INGEST_WRITER": proxied}
        proxy.arm(Fault("event_ingest_writer.commit", KILL(), "after"))
        killed = stage.start(tidings(*words, **environment))
        await proxy.until_fired(30)
        assert killed.wait() == -signal.SIGKILL, killed.output
    for _ in range(2):
        said = run(*words, cwd=tmp_path, env=stage.environment())
        assert "duplicate" in said.stdout
    stage.committed.append(Committed("twice", event.event_type, event.payload))
    stage.run(*EVERYTHING)
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert len(stage.receiver.requests) == 2


async def test_duplicate_routing_makes_one_saga_and_one_delivery(stage: Stage) -> None:
    """A router is killed when its sagas are written and not committed; two others route the same log, rewound."""
    await stage.subscriber("/one")
    await stage.subscriber("/two", "order.*")
    await stage.publish(20)
    await stage.publish(5, "invoice.sent")
    with FaultProxy(stage.database.server.port, stage.database.kind) as proxy:
        proxied = {"TIDINGS_DATABASE_URL_EVENT_ROUTER": proxy.url(stage.database.url("event_router"))}
        for fault in (
            Fault("router.insert_sagas", KILL(), "after"),
            Fault("event_router.commit", KILL(), "after", nth=2),
        ):
            proxy.arm(fault)
            router = stage.run("router", **proxied)
            await proxy.until_fired(30)
            await stage.is_dead(router)
    stage.broken.clear()  # no worker has died: nothing may come twice
    await stage.database.sql("UPDATE route_worker_cursors SET position = 0, last_event_id = NULL")
    stage.run("router")
    stage.run(*EVERYTHING)
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert len(stage.receiver.requests) == 45


@pytest.mark.parametrize("when", ["before", pytest.param("after", marks=pytest.mark.full)])
async def test_a_worker_that_dies_before_it_stored_the_result_is_made_up_for(stage: Stage, when: When) -> None:
    """The endpoint said 200 and nobody heard it; or it was stored, and the worker never learnt. Catalogue A1."""
    await stage.subscriber("/hook")
    await stage.publish(5)
    with FaultProxy(stage.database.server.port, stage.database.kind) as proxy:
        proxied = {"TIDINGS_DATABASE_URL_JOB_WORKER": proxy.url(stage.database.url("job_worker"))}
        proxy.arm(Fault("worker.report", KILL(), when))
        doomed = stage.run("worker", **proxied)
        stage.run("router", "orchestrator", "cleaner")
        await proxy.until_fired(40)
        await stage.is_dead(doomed)
    assert stage.receiver.requests
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    # Nothing was committed in either case: the transaction died with its process.
    assert len(stage.receiver.requests) > 5
    assert {(status, attempts) for _, _, status, attempts in await sagas(stage)} == {("Completed", 1)}
    assert await stage.database.value("SELECT MAX(lease_resets) FROM webhook_delivery_jobs") == 1


async def test_a_failing_delivery_is_tried_again_until_it_is_a_dead_letter(stage: Stage) -> None:
    """Orchestrator and worker are killed on the way; each attempt counts once."""
    stage.receiver.answer("/broken", Answer(500))
    await stage.subscriber("/broken")
    await stage.subscriber("/well")
    await stage.publish(3)
    stage.run("router", "cleaner")
    orchestrator, worker = stage.run("orchestrator"), stage.run("worker")
    await stage.until_requests(2, "/broken")
    stage.kill(orchestrator)
    stage.kill(worker)
    await stage.expire_leases()
    stage.run("orchestrator", "worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    ends = [(status, attempts) for _, _, status, attempts in await sagas(stage)]
    assert sorted(ends) == [("Completed", 1)] * 3 + [("DeadLettered", 3)] * 3
    letters = await stage.database.sql("SELECT final_error_code FROM dead_letters")
    assert [row["final_error_code"] for row in letters] == ["http_500"] * 3


async def test_a_requeued_dead_letter_is_a_new_saga_that_is_delivered(stage: Stage) -> None:
    """The worker that sends it is killed and made up for; the old saga never changes (r02 §3.3)."""
    stage.receiver.answer("/hook", Answer(503))
    await stage.subscriber("/hook", max_retry_limit=1)
    await stage.publish(3)
    stage.run("router", "orchestrator", "cleaner")
    worker = stage.run("worker")
    await stage.until_at_rest()
    before = await stage.database.sql("SELECT * FROM webhook_delivery_sagas ORDER BY id")
    letters = [row["id"] for row in await stage.database.sql("SELECT id FROM dead_letters ORDER BY id")]
    stage.receiver.answer("/hook", Answer(delay=0.5))
    operator = await stage.database.open("dead_letter_operator")
    for outcome in (RequeueOutcome.STARTED, RequeueOutcome.ALREADY_STARTED):
        assert {one.outcome for one in await requeue(operator, letters, "test")} == {outcome}
    stage.requeued += [row["id"] for row in before]
    await stage.until_requests(4)
    stage.kill(worker)
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert (await stage.database.sql("SELECT * FROM webhook_delivery_sagas ORDER BY id"))[:3] == before
    assert [(generation, status) for _, generation, status, _ in await sagas(stage)][3:] == [(1, "Completed")] * 3


async def test_a_worker_frozen_past_its_lease_changes_nothing_when_it_wakes(stage: Stage) -> None:
    """SIGSTOP while requests are under way: the zombie's results come too late, and are dropped."""
    hold = asyncio.Event()
    stage.receiver.answer("/hook", lambda _: Answer(hold=hold) if len(stage.receiver.requests) <= 2 else Answer())
    await stage.subscriber("/hook")
    await stage.publish(2)
    zombie = stage.run("worker")
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(2)
    zombie.freeze()
    stage.strike("freeze")
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    ends = await stage.database.sql("SELECT * FROM webhook_delivery_jobs ORDER BY id")
    hold.set()
    zombie.thaw()
    await eventually(lambda: LATE in zombie.output, 30, "the late reports")
    assert await stage.database.sql("SELECT * FROM webhook_delivery_jobs ORDER BY id") == ends
    assert await stage.problems() == []
    assert len(stage.receiver.requests) == 4
