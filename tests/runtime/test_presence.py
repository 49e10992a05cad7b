"""Presence: rows appear, are refreshed, and go; nothing depends on them."""

import asyncio
import os
from typing import Any

import pytest

import tidings
from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.waiting import eventually
from tidings import processes as processes_module
from tidings.runtime import presence as presence_module
from tidings.runtime.presence import new_worker_id, show_presence
from tidings.telemetry.notices import Notice, ServerAwaited


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_module, "SECONDS_BETWEEN_SIGNS", 0.05)


async def test_a_process_is_seen_from_its_start_until_its_end(engine: Database) -> None:
    stopping = asyncio.Event()
    me = new_worker_id("worker")
    showing = asyncio.create_task(show_presence(await engine.open("job_worker"), me, "worker", stopping))

    async def row() -> dict[str, Any]:
        rows = await engine.sql("SELECT * FROM worker_presence")
        return dict(rows[0]) if rows else {}

    first = await eventually(row, what="the row")
    assert (first["worker_id"], first["process"], first["pid"]) == (me, "worker", os.getpid())
    assert first["version"] == tidings.__version__

    async def refreshed() -> bool:
        return bool((await row())["seen_at"] > first["seen_at"])

    await eventually(refreshed, what="another sign of life")
    assert (await row())["started_at"] == first["started_at"]
    stopping.set()
    await showing
    assert await row() == {}


async def test_a_row_that_somebody_took_away_comes_back(engine: Database) -> None:
    stopping = asyncio.Event()
    me = new_worker_id("cleaner")
    showing = asyncio.create_task(show_presence(await engine.open("lease_cleaner"), me, "cleaner", stopping))

    async def is_there() -> bool:
        return bool(await engine.sql("SELECT 1 AS one FROM worker_presence"))

    await eventually(is_there, what="the row")
    await engine.sql("DELETE FROM worker_presence")
    await eventually(is_there, what="the row again")
    stopping.set()
    await showing


async def test_who_died_without_a_word_is_forgotten_after_a_day(engine: Database) -> None:
    await engine.sql(
        "INSERT INTO worker_presence (worker_id, process, host, pid, version, seen_at) VALUES"
        " ('gone', 'worker', 'h', 1, '1', '2020-01-01')"
    )
    await engine.sql(
        "INSERT INTO worker_presence (worker_id, process, host, pid, version) VALUES ('here', 'worker', 'h', 1, '1')"
    )
    stopping = asyncio.Event()
    showing = asyncio.create_task(show_presence(await engine.open("event_router"), "me", "router", stopping))

    async def others() -> list[str]:
        rows = await engine.sql("SELECT worker_id FROM worker_presence ORDER BY worker_id")
        return [row["worker_id"] for row in rows]

    async def is_forgotten() -> bool:
        return await others() == ["here", "me"]

    await eventually(is_forgotten, what="the old row to go")
    stopping.set()
    await showing
    assert await others() == ["here"]


async def test_one_who_ends_while_the_server_is_away_does_not_wait_for_it(
    engine: Database, proxy: FaultProxy, told: list[Notice], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has been trying to give a sign of life, and would go on with that for as long as its patience lasts."""
    monkeypatch.setattr(processes_module, "SECONDS_TO_LEAVE", 0.1)
    opened = await engine.open("job_worker", through=proxy, patience=60)
    proxy.refuse_connections(True)
    proxy.cut_all()

    async def work() -> None:
        async with processes_module._present(opened, "me", "worker"):
            await eventually(lambda: [one for one in told if isinstance(one, ServerAwaited)], what="its trying")

    await asyncio.wait_for(work(), 20)


def test_no_two_processes_have_the_same_name() -> None:
    """Catalogue A11: identity is per process start, not per host name."""
    assert new_worker_id("worker") != new_worker_id("worker")
    assert len(new_worker_id("orchestrator")) <= 100
