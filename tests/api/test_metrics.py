"""`/metrics` as Prometheus reads it, judged by its own tool."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable

import httpx
import pytest

from tests.api.conftest import TAKES_REQUESTS
from tests.scenarios.delivery.stage import Stage
from tests.support.database import Database
from tests.support.processes import Process
from tests.support.receiver import Answer, Receiver

PROMTOOL = shutil.which("promtool")


@pytest.mark.slow
@pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is missing: apt-get install prometheus (scripts/install-servers)"
)
async def test_prometheus_has_nothing_to_say_against_the_metrics(
    engine: Database, start: Callable[[Process], Process]
) -> None:
    """After deliveries, failures and dead letters, so that every kind of count is there."""
    async with Receiver() as receiver:
        stage = Stage(engine, receiver, start)
        stage.settings |= {"TIDINGS_LOG_LEVEL": "info", "TIDINGS_LOG_FORMAT": "json"}
        await stage.set()
        try:
            receiver.answer("/broken", Answer(503))
            await stage.subscriber("/well")
            await stage.subscriber("/broken", max_retry_limit=2)
            await stage.publish(3)
            process = stage.run("all")
            await stage.until_at_rest()
            found = await asyncio.to_thread(process.wait_for_line, TAKES_REQUESTS, 30)
            async with httpx.AsyncClient(base_url=found[1], timeout=20) as client:
                answer = await client.get("/metrics")
            assert await stage.stop(process) == 0
        finally:
            await stage.clear()
    assert answer.headers["content-type"].startswith("text/plain")
    assert "tidings_" in answer.text
    assert await asyncio.to_thread(judged, answer.content) == (0, b"", b"")


def judged(metrics: bytes) -> tuple[int, bytes, bytes]:
    ended = subprocess.run(
        [str(PROMTOOL), "check", "metrics"], input=metrics, capture_output=True, timeout=30, check=False
    )
    return ended.returncode, ended.stdout, ended.stderr
