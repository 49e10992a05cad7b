"""Which pages are asked for, and how long the server takes for each, from the request to the last of its answer."""

import math
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import httpx

from bench.console.filling import BUSY_TYPE, RARE_TYPE
from tests.api.conftest import no_metrics, settings_of
from tests.console.visitor import Visitor
from tests.support.database import Database
from tidings.api.app import build
from tidings.api.server import open_api
from tidings.db.accounts import ALL_ROLES
from tidings.decisions.keys import check_new_key
from tidings.roles.keys import actions as keys
from tidings.settings import load_settings
from tidings.wiring import Installation

PLAIN = "/healthz"
_URL = "http://console.bench"
_WARM_UP = 3
# 286 is what ends a page's looking again by itself.
_GOOD = {200, 286, 303}


@dataclass(frozen=True)
class Measured:
    """`cpu_ms` is what this process worked of the median; the rest is the database's, and waiting for a turn."""

    page: str
    median_ms: float
    p95_ms: float
    cpu_ms: float
    kilobytes: float


class Timed:
    """An ASGI application that notes how long each answer took."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.took = self.worked = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        began, worked = time.perf_counter(), time.process_time()
        await self._app(scope, receive, send)
        self.took, self.worked = time.perf_counter() - began, time.process_time() - worked


async def pages_of(database: Database) -> list[str]:
    """Each page of the console, and each way to look for something that has to look for long."""
    event = await database.value("SELECT MAX(id) - 1000 FROM events WHERE id > 1000")
    letter = await database.value("SELECT MAX(id) FROM dead_letters")
    task = await database.value("SELECT MAX(id) FROM sys_pending_tasks WHERE status = 4")
    old_task = await database.value("SELECT MAX(id) FROM sys_pending_tasks_history")
    route_letter = await database.value("SELECT MAX(id) FROM route_dead_letters")
    ((oldest,),) = [row.values() for row in await database.sql("SELECT MIN(created_at) AS at FROM events")]
    day = oldest.date().isoformat()
    return [
        "/sign-in",
        "/",
        "/?range=day",
        "/overview/live",
        "/events",
        f"/events?type={BUSY_TYPE}",
        f"/events?type={RARE_TYPE}",
        f"/events?type={RARE_TYPE}&since={day}T00:00",
        "/events?domain=eu",
        "/events?domain=nowhere",
        f"/events?since={day}T00:00&until={day}T23:00",
        "/events?q=c-100",
        "/events?q=ext-1000",
        f"/events/{event}",
        f"/events/{event}/live",
        "/subscriptions",
        "/subscriptions/1",
        "/subscriptions/1/live",
        "/subscriptions/new",
        "/dead-letters",
        "/dead-letters?subscription=7",
        "/dead-letters?error=nothing_like_it",
        f"/dead-letters?type={RARE_TYPE}",
        f"/dead-letters/{letter}",
        "/tasks",
        "/tasks?status=failed",
        "/tasks?status=pending",
        "/tasks?status=failed&type=NOBODY",
        "/tasks?status=retrying&type=KIND_3",
        "/tasks?type=KIND_2",
        "/tasks?type=KIND_2&key=key-1",
        f"/tasks/{task}",
        "/tasks/history",
        "/tasks/history?type=KIND_2",
        "/tasks/history?status=failed&type=NOBODY",
        f"/tasks/history?since={day}T00:00&status=failed",
        "/tasks/history?type=KIND_2&key=old-1",
        f"/tasks/{old_task}",
        "/routing",
        "/routing/routers/default",
        "/routing/routes",
        "/routing/routes/1",
        "/routing/routes/new",
        "/routing/preview?last=100",
        f"/routing/preview?event={event}",
        "/routing/dead-letters",
        "/routing/dead-letters?all=yes",
        f"/routing/dead-letters/{route_letter}",
        "/audit",
        "/audit?actor=ada@seldom",
        "/audit?action=nothing.like_it",
        "/audit?target=subscription:",
        "/audit?target=route:4",
        f"/audit?since={day}T00:00",
        "/keys",
        "/keys/own-1/revoke",
    ]


async def measure(database: Database, times: int) -> list[Measured]:
    """The plain page first; the rest are compared with it."""
    async with _visiting(database) as (visitor, timed):
        return [await _measured(visitor, timed, page, times) for page in [PLAIN, *await pages_of(database)]]


async def _measured(visitor: Visitor, timed: Timed, page: str, times: int) -> Measured:
    took: list[float] = []
    worked: list[float] = []
    for number in range(_WARM_UP + times):
        response = await visitor.get(page)
        if response.status_code not in _GOOD:
            # A page that does not come at all misses its bar; the others are still worth knowing.
            return Measured(f"{page} ({response.status_code})", math.inf, math.inf, 0.0, 0.0)
        if number >= _WARM_UP:
            took.append(timed.took * 1000)
            worked.append(timed.worked * 1000)
    return Measured(page, median(took), quantiles(took, n=20)[-1], median(worked), len(response.content) / 1024)


@asynccontextmanager
async def _visiting(database: Database) -> AsyncIterator[tuple[Visitor, Timed]]:
    """Somebody who is signed in as an admin, with the server in this process and nothing between."""
    made = await keys.add(await database.open("key_admin"), check_new_key("bench", ["admin"]), "bench")
    found = Installation(load_settings(environ=settings_of(database), roles=ALL_ROLES), None)
    async with open_api(found, no_metrics) as api:
        timed = Timed(build(api))
        async with Visitor(_URL) as visitor:
            await visitor.client.aclose()
            visitor.client = httpx.AsyncClient(
                transport=httpx.ASGITransport(timed), base_url=_URL, headers={"Accept": "text/html"}, timeout=60
            )
            response = await visitor.sign_in(made.key)
            assert response.status_code == 303, response.text
            yield visitor, timed


def slow(found: Sequence[Measured], bar: float) -> Mapping[str, float]:
    return {one.page: one.p95_ms for one in found if one.p95_ms > bar}
