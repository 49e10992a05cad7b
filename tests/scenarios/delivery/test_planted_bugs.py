"""Planted bugs: each must be found, by the checker or by what a story asks. A test that can't fail proves nothing."""

import asyncio

import pytest

from tests.roles.worker.scene import Scene
from tests.scenarios.delivery.stage import Stage
from tests.support.database import Database, throwaway_installation
from tests.support.fault_proxy import REWRITE, Fault, FaultProxy
from tests.support.receiver import Answer, Receiver
from tests.support.waiting import eventually
from tidings.db.engine import open_engine
from tidings.decisions.advancing import Buried, RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.errors import TidingsError
from tidings.model.dead_letter import RequeueOutcome
from tidings.roles.dead_letters.requeueing import requeue
from tidings.roles.orchestrator.operations import OrchestratorOperations
from tidings.roles.orchestrator.orchestrator import Orchestrator

pytestmark = pytest.mark.slow

# Without the bug nothing is found; what the stories without it come to is tested elsewhere, too.
PLANTED = [pytest.param(False, marks=pytest.mark.full), True]


async def zombie_story(scene: Scene, proxy: FaultProxy) -> list[str]:
    """A worker outlives its lease while another is sending; what is wrong after its late report."""
    first, second = asyncio.Event(), asyncio.Event()
    scene.receiver.answer("/", lambda _: Answer(hold=(first if len(scene.receiver.requests) == 1 else second)))
    (job,) = await scene.jobs(await scene.subscription())
    url = proxy.url(scene.database.url("job_worker"))
    slow = await open_engine(url, owner="job_worker", names=scene.database.names, size=3)
    zombie, other = await scene.worker(engine=slow), await scene.worker()
    await zombie.step()
    await eventually(lambda: scene.receiver.requests, what="the first request")
    await scene.reset(job)
    await other.step()
    await eventually(lambda: len(scene.receiver.requests) == 2, what="the second request")
    first.set()
    await zombie.close()
    row = await scene.job(job)
    second.set()
    await other.close()
    await slow.close()
    wrong = [] if row["status"] == "Leased" else [f"the job is {row['status']} while its worker is still sending"]
    return wrong + ([] if zombie.lost_leases else ["the late report was not counted"])


@pytest.mark.parametrize("planted", PLANTED)
async def test_a_report_without_a_token_is_found(engine: Database, planted: bool) -> None:
    async with Receiver() as receiver:
        scene = Scene(engine, receiver)
        with FaultProxy(engine.server.port, engine.kind) as proxy:
            if planted:
                proxy.arm(Fault("worker.*", REWRITE(b"AND lease_token", b"OR  lease_token")))
            found = await zombie_story(scene, proxy)
            assert bool(proxy.fired) is planted
        await scene.close()
    assert bool(found) is planted


NOT_MARKED = Fault("orchestrator.mark_applied", REWRITE(b"applied_at IS NULL", b"applied_at = NULL "))
COUNTED_TWICE = Fault("orchestrator.complete_sagas", REWRITE(b"attempt_count + 1", b"attempt_count + 2"))


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        pytest.param(None, "", marks=pytest.mark.full),
        (NOT_MARKED, "was never taken in"),
        (COUNTED_TWICE, "attempts and has"),
    ],
)
async def test_a_result_that_is_taken_in_twice_is_found(stage: Stage, planted: Fault | None, found: str) -> None:
    """By what it leaves behind: a mark that is missing, or a count that is too high."""
    stage.receiver.answer("/flaps", lambda request: Answer(503) if len(stage.receiver.requests) <= 3 else Answer())
    await stage.subscriber("/flaps", max_retry_limit=8)
    await stage.publish(3)
    with FaultProxy(stage.database.server.port, stage.database.kind, *([planted] if planted else [])) as proxy:
        proxied = {"TIDINGS_DATABASE_URL_SAGA_ORCHESTRATOR": proxy.url(stage.database.url("saga_orchestrator"))}
        stage.run("orchestrator", **proxied)
        stage.run("router", "worker", "cleaner")
        await stage.until_at_rest()
        problems = await stage.problems()
        await stage.stop(stage.processes[0])
        assert bool(proxy.fired) is bool(planted)
    assert bool(problems) is bool(planted)
    assert any(found in problem for problem in problems) is bool(planted)


async def bury_without_letter(self: OrchestratorOperations, buried: dict[int, Buried]) -> None:
    """As it would be if the dead letter were written in a transaction of its own, and the process died before it."""
    if buried:
        codes = [one.error_code for one in buried.values()]
        await self._run("bury_sagas", ids=[*buried], error_codes=codes)


@pytest.mark.parametrize("planted", PLANTED)
async def test_a_dead_letter_in_a_second_transaction_is_found(
    stage: Stage, planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.receiver.answer("/broken", Answer(500))
    await stage.subscriber("/broken")
    await stage.publish(2)
    if planted:
        monkeypatch.setattr(OrchestratorOperations, "bury_sagas", bury_without_letter)
    stage.run("router", "worker")
    orchestrator = Orchestrator(
        await stage.database.open("saga_orchestrator"),
        RetryPolicy(2, Backoff(0.05, 1, 0)),
        FlowLimits(1000, 100),
    )

    async def is_at_rest() -> bool:
        await orchestrator.step()
        return await asyncio.to_thread(stage.checker.is_at_rest)

    await eventually(is_at_rest, 40, "both to be buried")
    found = await stage.problems()
    assert any("has 0 dead letters" in problem for problem in found) is planted
    assert bool(found) is planted


async def plant_requeue_without_generation(database: Database) -> None:
    """The routine makes the new saga with the old one's generation."""
    if database.family == "postgresql":
        text = await database.value("SELECT pg_get_functiondef('start_next_generation'::regproc) AS t", "admin")
        await database.sql(text.replace("generation + 1", "generation + 0"), "admin")
        return
    (row,) = await database.sql("SHOW CREATE PROCEDURE start_next_generation", "admin")
    text = row["Create Procedure"]
    await database.sql("DROP PROCEDURE start_next_generation", "admin")
    await database.sql(text.replace("generation + 1", "generation + 0"), "admin")


@pytest.mark.parametrize("planted", PLANTED)
async def test_a_requeue_without_a_generation_is_found(engine: Database, planted: bool) -> None:
    installation = await throwaway_installation(engine.server)
    try:
        if planted:
            await plant_requeue_without_generation(installation)
        await installation.sql(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
            " VALUES ('*', 'https://a.example/', true, true)"
        )
        await installation.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")
        await installation.sql(
            "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status)"
            " VALUES (1, 1, 'c', 'DeadLettered')"
        )
        await installation.sql(
            "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot) VALUES (1, 1, 1, '{}')"
        )
        try:
            (done,) = await requeue(await installation.open("dead_letter_operator"), [1], "test")
            is_new = done.outcome is RequeueOutcome.STARTED and done.saga_id != 1 and done.generation == 1
        except TidingsError:
            is_new = False
        assert is_new is not planted
    finally:
        await installation.close()
