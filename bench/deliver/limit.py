"""What this machine could do at most: the rows of a delivery by bare SQL, its requests by a bare client, at once.

The rows are those that our steps write, on our own tables with their indexes and guards, in the same five commits; but
whole batches are alike, and nothing is looked for, locked, decided or read back. The requests are bytes that were made
before. Both do the same number of deliveries side by side, as they would share the machine in any product; the limit is
that number by the time until both have ended, with the batch and the sessions that are best.
"""

import asyncio
import datetime
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from bench.backlog import Backlog, filling
from bench.courier.sink import Sink
from bench.ports import LOOPBACK
from bench.sending import bare_client, finish
from bench.usage import MICROSECONDS, Usage
from bench.writing import TOKEN, statements_of
from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.db.session import Row
from tidings.db.statements import load_statements
from tidings.decisions.advancing import Completed
from tidings.decisions.tallying import Tallied, tally
from tidings.flow import OWNER

# Sagas in a batch, and sessions at once. Which is best depends on engine and machine, so all are tried.
TRIES = tuple(product((500, 2_000), (1, 2)))
EXCERPT = b"ok\n"
_ROUTER, _ORCHESTRATOR = "tidings.roles.router", "tidings.roles.orchestrator"


@dataclass(frozen=True)
class Limit:
    """Deliveries in a second, of both and of each until its own end, and CPU by process in µs for each of them."""

    rate: float
    batch: int
    sessions: int
    sql_rate: float
    client_rate: float
    cpu: dict[str, float]


async def find_limit(database: Database, sink: Sink, scheme: str, fan_out: int, deliveries: int) -> Limit:
    found = [await _try(database, sink, scheme, fan_out, deliveries, *how) for how in TRIES]
    return max(found, key=lambda one: one.rate)


async def _try(
    database: Database, sink: Sink, scheme: str, fan_out: int, deliveries: int, batch: int, sessions: int
) -> Limit:
    deliveries = deliveries // fan_out * fan_out
    async with filling(database) as backlog:
        events = await _prepare(backlog, fan_out, deliveries)
        engine = await database.open(OWNER, size=sessions)
        try:
            with bare_client("webhooks", sink.url(scheme), deliveries, authority=sink.authority) as client:
                usage = Usage({"database": database.server.pid, "sink": sink.pid, "client": client.pid})
                own, began = time.process_time(), time.perf_counter()
                requests = asyncio.create_task(asyncio.to_thread(finish, client))
                await _write_all(engine, events, fan_out, batch, sessions)
                sql_seconds = time.perf_counter() - began
                client_seconds = await requests
                seconds = time.perf_counter() - began
                cpu = usage.microseconds_each(deliveries)
            cpu["sql"] = round((time.process_time() - own) / deliveries * MICROSECONDS, 1)
        finally:
            await database.close()
            await database.empty()
    rates = (deliveries / sql_seconds, deliveries / client_seconds)
    return Limit(deliveries / seconds, batch, sessions, *rates, cpu)


async def _prepare(backlog: Backlog, fan_out: int, deliveries: int) -> list[int]:
    """The events that are to be delivered."""
    await backlog.subscribe([f"http://{LOOPBACK}/{number}" for number in range(fan_out)])
    await backlog.add_events(deliveries // fan_out)
    await backlog.run("INSERT INTO route_worker_cursors (worker_name) VALUES ('default')")
    return [int(id) for (id,) in await backlog.run("SELECT id FROM events ORDER BY id")]


async def _write_all(engine: Engine, events: Sequence[int], fan_out: int, batch: int, sessions: int) -> None:
    step = max(1, batch // fan_out)
    batches = iter([events[first : first + step] for first in range(0, len(events), step)])

    async def work(slot: int) -> None:
        for some in batches:
            await _write(engine, some, fan_out, slot)

    await asyncio.gather(*map(work, range(sessions)))


async def _write(engine: Engine, events: Sequence[int], fan_out: int, slot: int) -> None:
    """One batch, from its route to its end, in five transactions."""
    own = statements_of(__package__, engine.dialect)
    sagas = await _route(engine, events, fan_out)
    async with engine.transaction() as transaction:
        jobs = _ids(await transaction.rows(own["jobs"], ids=sagas))
        await transaction.run(own["start_sagas"], ids=sagas)
    async with engine.transaction() as transaction:
        await transaction.run(own["lease_jobs"], ids=jobs, seconds=60.0, worker="bench", token=TOKEN)
    async with engine.transaction() as transaction:
        await transaction.run(own["report_jobs"], ids=jobs, token=TOKEN, excerpt=EXCERPT, duration=12)
    async with engine.transaction() as transaction:
        await transaction.run(own["apply_jobs"], ids=jobs)
        await transaction.run(own["complete_sagas"], ids=sagas)
        totals = load_statements(_ORCHESTRATOR, engine.dialect)["add_totals"]
        await transaction.run(totals, totals=_totals(len(sagas), fan_out, slot))


async def _route(engine: Engine, events: Sequence[int], fan_out: int) -> list[int]:
    own, first, last = statements_of(__package__, engine.dialect), events[0], events[-1]
    async with engine.transaction() as transaction:
        await transaction.run(own["attempts"], first=first, last=last, matched=fan_out)
        sagas = _ids(await transaction.rows(own["sagas"], first=first, last=last))
        move = load_statements(_ROUTER, engine.dialect)["move_cursor"]
        counts = {"sent": len(events), "dry_run": 0, "disabled": 0, "skipped": 0, "failed": 0}
        place = {"worker_name": "default", "position": last, "last_event_id": last}
        await transaction.run(move, **place, **counts, summary="{}")
    return sagas


def _ids(rows: Sequence[Row]) -> list[int]:
    return [row["id"] for row in rows]


@cache
def _totals(deliveries: int, fan_out: int, slot: int) -> list[tuple[Any, ...]]:
    """Made once: counting is no part of it."""
    results = [Tallied(1 + number % fan_out, Completed(), 12) for number in range(deliveries)]
    now = datetime.datetime.now(datetime.UTC)
    return [(one.subscription_id, one.place, slot, one.began_at, *one.total.counts) for one in tally(results, now)]
