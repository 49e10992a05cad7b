"""Everything in one process is content with thirty connections, however busy it is (§3)."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.api.conftest import TAKES_REQUESTS
from tests.console.visitor import Visitor
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tidings.db.address import read_address
from tidings.flow import ROLE_NAMES

pytestmark = pytest.mark.slow

MOST = 30
KEY = "a-key-of-the-tests"
HANDLERS = """
import tidings

@tidings.task("QUICK")
async def quick(payload: object) -> None: ...
"""
SESSIONS = {
    "postgresql": "SELECT usename AS login FROM pg_stat_activity WHERE usename IS NOT NULL",
    "mysql": "SELECT user AS login FROM information_schema.processlist",
}
LISTS = ("events", "subscriptions", "sagas", "dead-letters", "routes", "gates", "routers", "tasks", "stats")
# What makes the API speak as a role for the first time, beside publishing and looking.
DEEDS = {
    "subscriptions": {"event_type": "*", "callback_url": "http://127.0.0.1:9/"},
    "subscriptions/1/verify": {},
    "routes": {"event_type": "z", "target": "webhook"},
    "sagas/1/resend": {},
    "tasks": {"biz_type": "QUICK", "biz_key": "once", "payload": 1},
    "route-dead-letters/1/replay": {},
}
SPOKEN_AS = {
    *("event_ingest_writer", "observer", "key_checker", "subscription_admin", "subscription_verifier", "route_admin"),
    *("dead_letter_operator", "task_producer", "event_router", "session_keeper", "key_admin"),
}


async def everything(database: Database, start: Callable[[Process], Process], folder: Path) -> str:
    """Where its API listens."""
    (folder / "handlers_of_one.py").write_text(HANDLERS)
    for gate in ("routing", "router:default"):
        await database.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
    settings = {
        "TIDINGS_ADMIN_KEY": KEY,
        "TIDINGS_SECRET_KEYS": KEY,
        "TIDINGS_PORT": "0",
        "TIDINGS_ALLOW_HTTP_HOSTS": "127.0.0.1",
        "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8",
        "TIDINGS_APP": "handlers_of_one",
    }
    process = tidings("run", "all", **database.environment(), **settings)
    process.cwd = folder
    start(process)
    return (await asyncio.to_thread(process.wait_for_line, TAKES_REQUESTS, 60))[1]


async def keep_busy(client: httpx.AsyncClient, turns: int) -> None:
    async def publish() -> None:
        for number in range(turns):
            await client.post("/v1/events", json={"event_type": "a", "payload": number})

    async def submit() -> None:
        for number in range(turns):
            await client.post("/v1/tasks", json={"biz_type": "QUICK", "biz_key": str(number), "payload": 1})

    async def look() -> None:
        for _ in range(turns // 10):
            for name in LISTS:
                await client.get(f"/v1/{name}")
            await client.get("/metrics")

    for path, given in DEEDS.items():
        answer = await client.post(f"/v1/{path}", json=given)
        assert answer.status_code < 500, answer.text
    await asyncio.gather(*(publish() for _ in range(8)), submit(), look(), look(), look())


async def test_everything_in_one_process_has_no_more_than_thirty(
    engine: Database, start: Callable[[Process], Process], tmp_path: Path
) -> None:
    logins = {read_address(engine.url(role)).user: role for role in ROLE_NAMES}
    url = await everything(engine, start, tmp_path)
    seen: list[Counter[str]] = []
    async with Visitor(url) as visitor:
        await visitor.sign_in(KEY)
        await visitor.text("/keys")
    async with httpx.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30) as client:
        busy = asyncio.create_task(keep_busy(client, 60))
        while not busy.done():
            rows = await engine.sql(SESSIONS[engine.family], "admin")
            seen.append(Counter(logins[row["login"]] for row in rows if row["login"] in logins))
            await asyncio.wait({busy}, timeout=0.02)
        await busy
    most = max(seen, key=Counter.total)
    assert most.total() <= MOST, most
    assert most.total() > 15, "the test has not seen what it is about"
    assert SPOKEN_AS - {role for sessions in seen for role in sessions} == set()
