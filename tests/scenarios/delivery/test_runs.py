"""Whole runs of real processes, several of each role: undisturbed, told to stop in the middle, and under fire."""

import asyncio
import os
import random
import signal
from functools import partial

import pytest

from tests.scenarios.delivery.stage import SHORT_LEASE, SHORT_LEASE_SECONDS, Committed, Stage
from tests.support.receiver import Answer, Received
from tests.support.waiting import eventually, pause

pytestmark = pytest.mark.slow


def flapping(request: Received) -> Answer:
    """Fails the first attempt of every tenth event; one that fails more often is sent to one by one, and slowly."""
    number = int(request.headers["tidings-correlation-id"].removeprefix("c"))
    return Answer(503) if request.attempt == 1 and number % 10 == 0 else Answer()


async def audience(stage: Stage) -> None:
    """Endpoints of four kinds."""
    stage.receiver.answer("/slow", Answer(delay=0.2))
    stage.receiver.answer("/flaps", flapping)
    stage.receiver.answer("/broken", Answer(500))
    await stage.subscriber("/well")
    await stage.subscriber("/slow", "order.*")
    await stage.subscriber("/flaps")
    await stage.subscriber("/broken", "invoice.sent", max_retry_limit=2)


async def test_without_faults_every_attempt_is_sent_once(stage: Stage) -> None:
    """There are duplicates only after a fault."""
    await audience(stage)
    for roles in (("router", "orchestrator"), ("orchestrator", "cleaner"), ("worker",), ("worker", "cleaner")):
        stage.run(*roles)
    for _ in range(5):
        await stage.publish(40)
        await stage.publish(2, "invoice.sent")
    await stage.until_at_rest()
    assert await stage.problems() == []
    sent = {path: len(stage.receiver.at(path)) for path in ("/well", "/slow", "/flaps", "/broken")}
    assert sent == {"/well": 210, "/slow": 200, "/flaps": 231, "/broken": 20}


@pytest.mark.parametrize("word", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.full)])
async def test_a_worker_that_is_told_to_stop_drains_and_causes_no_duplicate(stage: Stage, word: signal.Signals) -> None:
    """Catalogue A12: requests under way are finished and reported, the rest is given back, uncounted."""
    stage.receiver.answer("/slow", Answer(delay=0.6))
    await stage.subscriber("/slow", max_in_flight=5)
    await stage.publish(15)
    worker = stage.run("worker")
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(5)
    stage.processes.remove(worker)
    os.kill(worker.pid, word)
    assert await asyncio.to_thread(worker.wait, 30) == 0
    assert "Traceback" not in worker.output
    assert {request.answered for request in stage.receiver.requests} == {200}
    assert await stage.database.value("SELECT COUNT(*) FROM webhook_delivery_jobs WHERE status = 'Leased'") == 0
    rows = await stage.database.sql("SELECT process FROM worker_presence ORDER BY process")
    assert [row["process"] for row in rows] == ["cleaner", "orchestrator", "router"]
    stage.run("worker")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert len(stage.receiver.requests) == 15


async def test_everything_in_one_process_stops_cleanly_also_while_the_database_is_away(stage: Stage) -> None:
    await audience(stage)
    process = stage.run("all")
    await stage.publish(20)
    await stage.until_at_rest()
    stage.database.server.kill()
    try:
        process.wait_for_line("does not answer|step failed", timeout=30)
        process.terminate()
        assert await asyncio.to_thread(process.wait, 20) == 0
        stage.processes.remove(process)
        assert "Traceback" not in process.output
    finally:
        stage.database.server.start()
    assert await stage.problems() == []


class Fire:
    """Kills and freezes in an order drawn from a seed; every role is always begun again."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage = stage
        self.chance = random.Random(seed)
        self.running = {
            name: stage.run(*name.split("+"))
            for name in ("router", "orchestrator", "orchestrator+cleaner", "worker", "worker+cleaner")
        }
        self.log: list[str] = []

    async def strike(self, what: str) -> None:
        await pause(self.chance.uniform(0.2, 0.8))
        name = self.chance.choice([*self.running] if what == "kill" else ["worker", "worker+cleaner"])
        self.log.append(f"{what} {name}")
        if what == "kill":
            self.stage.kill(self.running[name])
            self.running[name] = self.stage.run(*name.split("+"))
        else:
            await self.stage.freeze(self.running[name], SHORT_LEASE_SECONDS + 1)


async def under_fire(stage: Stage, seed: int, waves: int, schedule: list[str]) -> None:
    stage.settings |= SHORT_LEASE
    await audience(stage)
    fire = Fire(stage, seed)
    publishing = asyncio.create_task(publish_all(stage, waves))
    fire.chance.shuffle(schedule)
    for what in schedule:
        await fire.strike(what)
    await publishing
    await stage.until_at_rest(90 + 5 * waves)
    assert await stage.problems() == [], f"seed {seed}: {fire.log}"


async def publish_all(stage: Stage, waves: int) -> None:
    for _ in range(waves):
        await stage.publish(40)
        await stage.publish(2, "invoice.sent")
        await pause(0.05)


async def test_nothing_is_lost_and_nothing_ends_twice_under_fire(stage: Stage) -> None:
    await under_fire(stage, seed=1, waves=6, schedule=["kill"] * 6 + ["freeze"])


async def produce(stage: Stage, waves: int, doubtful: list[Committed]) -> None:
    """Each wave is one transaction of a connection of its own, whose producer learns that it is committed, or not."""
    while waves:
        wave = stage.new_events(20, "order.paid" if waves % 5 else "invoice.sent")
        try:
            await stage.commit(wave)
            waves -= 1
        except Exception:  # whatever the driver says: perhaps it is committed, perhaps not
            doubtful += wave
        await pause(0.1)


@pytest.mark.parametrize("waves", [25, pytest.param(250, marks=[pytest.mark.full, pytest.mark.timeout(600)])])
async def test_nothing_that_was_committed_is_lost_when_the_database_is_killed(stage: Stage, waves: int) -> None:
    """kill -9 of the server, twice, while four producers write and every role works; the cleaner waits as it should."""
    stage.settings |= SHORT_LEASE | {"TIDINGS_TEST_CLEANER_PATIENCE": "5"}
    stage.receiver.answer("/flaps", flapping)
    await stage.subscriber("/well")
    await stage.subscriber("/flaps", "invoice.*")
    for name in (("router", "orchestrator"), ("worker", "cleaner")):
        stage.run(*name)
    await stage.publish(20)
    await stage.until_requests(20)
    doubtful: list[Committed] = []
    producing = [asyncio.create_task(produce(stage, waves, doubtful)) for _ in range(4)]

    def are_committed(part: float) -> bool:
        return len(stage.committed) >= part * 4 * 20 * waves

    for part in (0.2, 0.6):
        await eventually(partial(are_committed, part), 300, "the producers to go on")
        await stage.restart_database()
    await asyncio.gather(*producing)
    assert doubtful, "no producer was hit"
    stored = {row["correlation_id"] for row in await stage.database.sql("SELECT correlation_id FROM events")}
    stage.committed += [one for one in doubtful if one.correlation_id in stored]
    await stage.until_at_rest(120)
    assert await stage.problems() == []


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_lost_and_nothing_ends_twice_under_heavy_fire(stage: Stage, seed: int) -> None:
    await under_fire(stage, seed, waves=40, schedule=["kill"] * 30 + ["freeze"] * 6)
