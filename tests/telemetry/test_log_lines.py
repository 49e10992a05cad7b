"""Log lines of a whole delivery: who, what and where at every stage, as JSON (r02 §5.3, phase 8)."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenarios.delivery.stage import Stage
from tests.support.database import Database
from tests.support.processes import Process
from tests.support.receiver import Answer, Receiver
from tidings.telemetry import bus, log_lines, notices
from tidings.telemetry.notices import DeliverySucceeded, Notice

ABOUT = {"correlation_id", "event_id", "saga_id"}
JOB = {"job_id", "worker_id", "lease_expiration"}


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Nobody listens but the test."""
    before = [*bus._listeners]
    bus._listeners.clear()
    bus._hearers.clear()
    yield
    bus._listeners[:] = before
    bus._hearers.clear()


def test_every_notice_has_its_words() -> None:
    kinds = {kind for kind in vars(notices).values() if isinstance(kind, type) and issubclass(kind, Notice)}
    spoken = {kind for kind in kinds if not kind.__subclasses__()}
    assert set(log_lines.WORDING) == spoken


@pytest.mark.slow
async def test_every_stage_of_a_delivery_says_what_it_is_about(
    engine: Database, start: Callable[[Process], Process]
) -> None:
    """Phase 8: "logging at each stage with correlation_id, saga_id, job_id, and delivery status"."""
    async with Receiver() as receiver:
        stage = Stage(engine, receiver, start)
        stage.settings |= {"TIDINGS_LOG_LEVEL": "debug", "TIDINGS_LOG_FORMAT": "json"}
        await stage.set()
        try:
            receiver.answer("/broken", Answer(503))
            await stage.subscriber("/well")
            await stage.subscriber("/broken", max_retry_limit=2)
            (event,) = await stage.publish()
            process = stage.run("all")
            await stage.until_at_rest()
            assert await stage.stop(process) == 0
            process._reader.join(10)
        finally:
            await stage.clear()
        lines = [json.loads(line) for line in process.output.splitlines() if line.startswith("{")]
        sagas = {row["subscription_id"]: row for row in await engine.sql("SELECT * FROM webhook_delivery_sagas")}
        jobs = {row["id"]: row for row in await engine.sql("SELECT * FROM webhook_delivery_jobs")}

    def said(words: str) -> list[dict[str, Any]]:
        return [line for line in lines if line["event"] == words and line["correlation_id"] == event.correlation_id]

    stages = {
        "delivery started": ("InProgress", ABOUT, 3),
        "job leased": ("Leased", ABOUT | JOB, 3),
        "request answered well": ("Completed", ABOUT | JOB | {"response_status", "duration_ms"}, 1),
        "request failed": ("Failed", ABOUT | JOB | {"error_code", "response_status", "duration_ms"}, 2),
        "delivered": ("Completed", ABOUT | JOB | {"attempt_count"}, 1),
        "delivery failed, will be tried again": ("PendingRetry", ABOUT | JOB | {"error_code", "delay_seconds"}, 1),
        "delivery given up, dead letter written": ("DeadLettered", ABOUT | JOB | {"error_code"}, 1),
    }
    for words, (status, fields, count) in stages.items():
        found = said(words)
        assert len(found) == count, words
        for line in found:
            assert line["delivery_status"] == status
            assert {name for name in fields if line.get(name) in (None, "")} == set(), words
    dead, last = said("delivery given up, dead letter written")[0], max(jobs)
    assert (dead["saga_id"], dead["job_id"]) == (sagas[2]["id"], last)
    assert dead["worker_id"] == jobs[last]["worker_id"]
    assert dead["error_code"] == "http_503"
    assert dead["lease_expiration"][:23] == str(jobs[last]["lease_until"])[:23]


def test_a_line_that_nobody_can_read_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pipe is closed, deliveries go on."""

    tried: list[str] = []

    class Broken(io.StringIO):
        def write(self, text: str) -> int:
            tried.append(text)
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Broken())
    log_lines.start_logging("json", "debug")
    bus.tell(notices.JobsLeased("w", 1))
    assert tried


def test_what_is_not_shown_is_not_listened_to() -> None:
    log_lines.start_logging("json", "info")
    assert not bus.is_heard(DeliverySucceeded)
    assert bus.is_heard(notices.DeliveryFailed)
