"""What an idle system asks of its database: counted on the wire for each role, and by the server itself in all."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.support.database import Database
from tests.support.fault_proxy import FaultProxy
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually, pause
from tidings.runtime.loop import SECONDS_ALERT

pytestmark = pytest.mark.slow

ROLES = ("router", "orchestrator", "worker", "cleaner")
ASKED_BY = {
    "router": "router",
    "event_router": "router",
    "orchestrator": "orchestrator",
    "saga_orchestrator": "orchestrator",
    "worker": "worker",
    "job_worker": "worker",
    "cleaner": "cleaner",
    "lease_cleaner": "cleaner",
    "runtime": "signs of life",
}
SECONDS = 6.0
SERVERS_COUNT = {
    "postgresql": "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()",
    "mysql": "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'QUESTIONS'",
}


async def until_idle(engine: Database, start: Callable[[Process], Process], proxy: FaultProxy) -> None:
    """All roles in one process, with open gates and nothing to do."""
    for gate in ("routing", "router:default"):
        await engine.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
    urls = {name: proxy.url(url) if "URL" in name else url for name, url in engine.environment().items()}
    start(tidings("run", *ROLES, **urls, TIDINGS_SECRET_KEYS="a-key-of-the-tests"))

    async def are_there() -> bool:
        return bool(await engine.value("SELECT COUNT(*) FROM worker_presence") == len(ROLES))

    await eventually(are_there, 30, "every role")
    await pause(SECONDS_ALERT + 1)


async def test_an_idle_role_asks_no_more_than_it_may(
    engine: Database, start: Callable[[Process], Process], proxy: FaultProxy
) -> None:
    """The router may ask "20 times a second with one single-row statement; other idle roles ≤ 2 queries/s"."""
    await until_idle(engine, start, proxy)
    proxy.clear()
    before = int(await engine.value(SERVERS_COUNT[engine.family], "admin"))
    await pause(SECONDS)
    asked = Counter(ASKED_BY[name.partition(".")[0]] for name in proxy.seen)
    by_the_server = int(await engine.value(SERVERS_COUNT[engine.family], "admin")) - before
    # One more each: what is counted begins and ends anywhere between two looks.
    most = {"router": 20 * SECONDS + 10, "orchestrator": 2 * SECONDS + 1, "worker": 2 * SECONDS + 1}
    most |= {"cleaner": 2 * SECONDS + 1, "signs of life": len(ROLES) + 1}
    assert {role: (count, most[role]) for role, count in asked.items() if count > most[role]} == {}
    assert proxy.seen.count("router.glance") > 10 * SECONDS
    # Nobody asks by another way. What came before is counted too where the server is late with its count.
    assert by_the_server < 40 * SECONDS + 20


async def test_an_idle_system_finds_what_nobody_told_it(
    engine: Database, start: Callable[[Process], Process], proxy: FaultProxy
) -> None:
    """Correctness does not depend on a wake-up: a plain INSERT, by somebody who knows of none."""
    await until_idle(engine, start, proxy)
    await engine.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}')")

    async def is_routed() -> bool:
        return bool(await engine.value("SELECT COUNT(*) FROM route_attempts") == 1)

    await eventually(is_routed, what="the event to be routed")
