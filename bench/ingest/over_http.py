"""Our API beside the least that there could be: a bare ASGI app for single events, a bare INSERT for batches.

Each in turn, on the same table with its indexes and guards, from the same bare client in a process of its own. Of
each the best turn counts.
"""

import asyncio
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.bare_client import EVENTS_AT_ONCE
from bench.payload import PAYLOAD
from bench.ports import LOOPBACK, free_port, listens
from bench.product import API, Group, running
from bench.sending import bare_client, finish
from tests.support.database import Database
from tests.support.waiting import wait_until
from tidings.db.statements import load_statements

WRITER = "event_ingest_writer"
SINGLE_CLIENTS, BATCH_CLIENTS = 64, 8
# Sessions that insert batches at once; of these the best.
SESSIONS = (1, 2, 4)
TURNS = 2


@dataclass(frozen=True)
class Compared:
    """Events in a second: ours, and the least that there could be."""

    what: str
    ours: float
    bare: float

    @property
    def ratio(self) -> float:
        return self.ours / self.bare


async def compare(database: Database, events: int, turns: int = TURNS) -> list[Compared]:
    singles: dict[str, list[float]] = {"ours": [], "bare": []}
    batches: dict[str, list[float]] = {"ours": [], "bare": []}
    for _ in range(turns):
        async with running(database, [Group(API, (API,))]) as product:
            singles["ours"].append(await _sent("event", product.api, events, 1, SINGLE_CLIENTS))
            batches["ours"].append(await _sent("events", product.api, events, EVENTS_AT_ONCE, BATCH_CLIENTS))
        with _bare_app(database) as url:
            singles["bare"].append(await _sent("event", url, events, 1, SINGLE_CLIENTS))
        batches["bare"] += [await _inserted(database, events, sessions) for sessions in SESSIONS]
        await database.empty()
    return [
        Compared("single", max(singles["ours"]), max(singles["bare"])),
        Compared("batch", max(batches["ours"]), max(batches["bare"])),
    ]


async def _sent(kind: str, url: str, events: int, at_once: int, connections: int) -> float:
    requests = max(1, events // at_once)
    warm_up = max(connections, requests // 10)
    with bare_client(kind, url, requests, connections=connections, warm_up=warm_up) as client:
        return requests * at_once / await asyncio.to_thread(finish, client)


@contextmanager
def _bare_app(database: Database) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "bench.ingest.bare_app", str(port), database.url(WRITER), database.names.schema]
    with subprocess.Popen(command) as app:
        try:
            wait_until(lambda: listens(port), 60, "the bare app")
            yield f"http://{LOOPBACK}:{port}/v1/events"
        finally:
            app.terminate()


async def _inserted(database: Database, events: int, sessions: int) -> float:
    """As many rows in a statement as our API takes in a request."""
    engine = await database.open(WRITER, size=sessions)
    insert = load_statements(__package__, engine.dialect)["insert"]
    left = iter(range(events // EVENTS_AT_ONCE))

    async def work() -> None:
        for _ in left:
            rows = [("order.paid", PAYLOAD, uuid.uuid4().hex) for _ in range(EVENTS_AT_ONCE)]
            async with engine.transaction() as transaction:
                await transaction.rows(insert, events=rows)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(sessions)))
    took = time.perf_counter() - began
    await engine.close()
    return events // EVENTS_AT_ONCE * EVENTS_AT_ONCE / took
