"""Planted bugs: each must be found, by the checker or by what a story asks. A test that can't fail proves nothing.

That of the dead letter in a second transaction is planted in tests/faults/test_orchestrator_killed.py.
"""

import pytest

from tests.scenarios.delivery.stage import Stage
from tests.scenarios.delivery.zombies import outlive_a_lease
from tests.support.database import Database, throwaway_installation
from tests.support.fault_proxy import REWRITE, Fault, FaultProxy
from tidings.errors import TidingsError
from tidings.model.dead_letter import RequeueOutcome
from tidings.roles.dead_letters.requeueing import requeue

pytestmark = pytest.mark.slow

# Without the bug nothing is found; what the stories without it come to is tested elsewhere, too.
PLANTED = [pytest.param(False, marks=pytest.mark.full), True]


@pytest.mark.quick_on("postgresql")
@pytest.mark.parametrize("planted", PLANTED)
async def test_a_report_without_a_token_is_found(stage: Stage, planted: bool) -> None:
    """By what it leaves behind: the zombie's word is stored, and the endpoint has the other's."""
    without = Fault("worker.*", REWRITE(b"AND lease_token", b"OR  lease_token"))
    with FaultProxy(stage.database.server.port, stage.database.kind, *([without] if planted else [])) as proxy:
        proxied = {"TIDINGS_DATABASE_URL_JOB_WORKER": proxy.url(stage.database.url("job_worker"))}
        await outlive_a_lease(stage, **proxied)
        problems = await stage.problems()
        await stage.stop(stage.processes[0])
        assert bool(proxy.fired) is planted
    assert any("says 500; under its last lease was said" in problem for problem in problems) is planted
    assert bool(problems) is planted


NOT_MARKED = Fault("orchestrator.mark_applied", REWRITE(b"applied_at IS NULL", b"applied_at = NULL "))
COUNTED_TWICE = Fault("orchestrator.complete_sagas", REWRITE(b"attempt_count + 1", b"attempt_count + 2"))


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        pytest.param(None, "", marks=pytest.mark.full),
        pytest.param(NOT_MARKED, "was never taken in", marks=pytest.mark.quick_on("mariadb")),
        pytest.param(COUNTED_TWICE, "attempts and has", marks=pytest.mark.quick_on("postgresql")),
    ],
)
async def test_a_result_that_is_taken_in_twice_is_found(stage: Stage, planted: Fault | None, found: str) -> None:
    """By what it leaves behind: a mark that is missing, or a count that is too high."""
    await stage.subscriber("/hook")
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


@pytest.mark.quick_on("mariadb")
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
