"""Workers that die or freeze at the worst moments, as real processes; in the end the checker has its say.

The rows A of docs/reference/failures.md that phase 8 does not tell.
"""

import asyncio
import os
import signal
import time

import pytest

from tests.scenarios.delivery.stage import Stage
from tests.scenarios.delivery.zombies import LATE, outlive_a_lease
from tests.support.fault_proxy import KILL, Fault, FaultProxy
from tests.support.processes import Process
from tests.support.receiver import Answer, Received
from tests.support.waiting import eventually, pause

pytestmark = pytest.mark.slow


async def test_a_job_that_was_leased_and_not_sent_yet_arrives_once(stage: Stage) -> None:
    """A2: its worker was killed before it connected; only what was under way is sent a second time."""
    stage.receiver.answer("/hook", Answer(hangs=True))
    await stage.subscriber("/hook", max_in_flight=1)
    await stage.publish(2)
    doomed = stage.run("worker")
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(1)
    await stage.until_jobs(2, "Leased")
    stage.kill(doomed)
    stage.receiver.answer("/hook", Answer())
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert sorted(stage.arrived().values()) == [1, 2]


async def test_a_worker_that_dies_while_it_claims_leaves_the_jobs_to_others_at_once(stage: Stage) -> None:
    """A3: the claim is undone with its transaction; no cleaner is needed, and no expiry is counted."""
    await stage.subscriber("/hook")
    await stage.publish(3)
    stage.run("router", "orchestrator")
    await stage.until_jobs(3, "Pending")
    with FaultProxy(stage.database.server.port, stage.database.kind) as proxy:
        proxied = {"TIDINGS_DATABASE_URL_JOB_WORKER": proxy.url(stage.database.url("job_worker"))}
        proxy.arm(Fault("worker.lease_jobs", KILL(), "after"))
        doomed = stage.run("worker", **proxied)
        await proxy.until_fired(30)
        await stage.is_dead(doomed)
    await stage.until_jobs(3, "Pending")
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert [*stage.arrived().values()] == [1, 1, 1]
    assert await stage.database.value("SELECT SUM(lease_resets) FROM webhook_delivery_jobs") == 0


async def test_a_zombie_is_not_heard_while_another_is_still_sending(stage: Stage) -> None:
    """A5: the job is leased again, so that its state alone would let the late report pass."""
    job = await outlive_a_lease(stage)
    assert (job["status"], job["finished_at"]) == ("Leased", None)
    assert await stage.problems() == []
    assert await stage.database.value("SELECT COUNT(*) FROM webhook_delivery_jobs") == 1


async def test_a_zombie_that_wakes_before_it_has_sent_does_not_send(stage: Stage) -> None:
    """A6: its own clock went on while it was frozen, and tells it that the lease is over."""
    hold = asyncio.Event()
    stage.receiver.answer("/hook", lambda _: Answer(hold=hold) if len(stage.receiver.requests) == 1 else Answer())
    await stage.subscriber("/hook", max_in_flight=1)
    await stage.publish(2)
    lease = 6
    zombie = stage.run("worker", TIDINGS_LEASE_SECONDS=str(lease), TIDINGS_TIMEOUT_SECONDS="4s")
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(1)
    await stage.until_jobs(2, "Leased")
    leased_by = time.monotonic()
    zombie.freeze()
    stage.strike("freeze")
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    await pause(leased_by + lease - time.monotonic())
    hold.set()
    zombie.thaw()
    await eventually(lambda: LATE in zombie.output, 30, "the late report of the first")
    assert await stage.stop(zombie) == 0
    assert await stage.problems() == []
    assert sorted(stage.arrived().values()) == [1, 2]


async def test_a_job_that_kills_every_worker_is_given_up_and_the_others_are_delivered(stage: Stage) -> None:
    """A10, ruling 7: so many expiries are reset, the next one fails the job; nobody else is held up by it."""
    stage.settings["TIDINGS_MAX_LEASE_RESETS"] = "1"
    victims: list[Process] = []

    def poison(_: Received) -> Answer:
        os.kill(victims[-1].pid, signal.SIGKILL)
        return Answer(hangs=True)

    stage.receiver.answer("/poison", poison)
    await stage.subscriber("/poison", "poison.cup", max_retry_limit=1)
    await stage.subscriber("/well", "order.*")
    await stage.publish(1, "poison.cup")
    stage.run("router", "orchestrator", "cleaner")
    for _ in range(2):
        await stage.publish(3)
        victims.append(stage.run("worker"))
        await stage.is_dead(victims[-1])
        await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert len(stage.receiver.at("/poison")) == 2
    (letter,) = await stage.database.sql("SELECT final_error_code FROM dead_letters")
    assert letter["final_error_code"] == "lease_expired"
    wells = await stage.database.sql("SELECT status FROM webhook_delivery_sagas ORDER BY id")
    assert sorted(row["status"] for row in wells) == ["Completed"] * 6 + ["DeadLettered"]


async def test_a_worker_that_is_ended_by_a_second_signal_is_made_up_for(stage: Stage) -> None:
    """A13: it does not wait for its requests any longer; they are sent again when their leases have ended."""
    stage.receiver.answer("/hook", Answer(hangs=True))
    await stage.subscriber("/hook", max_in_flight=1)
    await stage.publish(2)
    impatient = stage.run("worker")
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(1)
    await stage.until_jobs(2, "Leased")
    impatient.terminate()
    # It has heard the first signal when it gives back what it has not sent.
    await stage.until_jobs(1, "Pending")
    assert impatient.is_running()
    impatient.terminate()
    await stage.is_dead(impatient)
    assert impatient.wait() == -signal.SIGTERM
    stage.receiver.answer("/hook", Answer())
    await stage.expire_leases()
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert sorted(stage.arrived().values()) == [1, 2]
