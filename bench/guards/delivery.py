"""Takes batches through one installation, from event to completed saga, each statement as its role's login.

The rows are locked first, as the product does. Measured are the statements that write, and the whole transactions.
"""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from bench.guards.measuring import Meter
from bench.payload import PAYLOAD
from bench.writing import TOKEN, statements_of
from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.db.session import Row

BATCH = 500
ROLES = ("event_ingest_writer", "event_router", "saga_orchestrator", "job_worker")
STATEMENTS = (
    "insert_events",
    "insert_sagas",
    "start_sagas",
    "insert_jobs",
    "lease_jobs",
    "report_jobs",
    "apply_jobs",
    "complete_sagas",
)
TRANSACTIONS = ("publish", "route", "start", "lease", "report", "apply")
_EXCERPT = b'{"received": true}'

Stage = Callable[[], Awaitable[None]]
Ask = Callable[..., Awaitable[Sequence[Row]]]


class Delivery:
    """`stages` are its transactions in their order; each goes on with what the one before it left."""

    def __init__(self, database: Database, publishes_only: bool = False) -> None:
        self.meter = Meter()
        names = TRANSACTIONS[:1] if publishes_only else TRANSACTIONS
        self.stages: list[Stage] = [getattr(self, name) for name in names]
        self._database = database
        self._engines: dict[str, Engine] = {}
        self._threads: dict[str, int] = {}
        self._events: Sequence[Row] = ()
        self._jobs: list[int] = []

    async def open(self) -> Self:
        for role in ROLES:
            engine = await self._database.open(role, size=1)
            self._engines[role] = engine
            self._threads[role] = await thread_of(engine)
        return self

    async def publish(self) -> None:
        events = [("order.paid", PAYLOAD, str(uuid.uuid4()), str(uuid.uuid4())) for _ in range(BATCH)]
        async with self._transaction("publish", "event_ingest_writer") as ask:
            self._events = await ask("insert_events", events=events)

    async def route(self) -> None:
        sagas = [(event["id"], 1, str(uuid.uuid4())) for event in self._events]
        async with self._transaction("route", "event_router") as ask:
            await ask("insert_sagas", sagas=sagas)

    async def start(self) -> None:
        async with self._transaction("start", "saga_orchestrator") as ask:
            sagas = await ask("lock_pending_sagas", batch=BATCH)
            await ask("start_sagas", ids=_ids(sagas))
            await ask("insert_jobs", jobs=[(s["id"], s["subscription_id"], s["next_attempt_at"], 1) for s in sagas])

    async def lease(self) -> None:
        async with self._transaction("lease", "job_worker") as ask:
            self._jobs = _ids(await ask("lock_pending_jobs", batch=BATCH))
            await ask("lease_jobs", ids=self._jobs, seconds=60.0, worker="bench", token=TOKEN)

    async def report(self) -> None:
        async with self._transaction("report", "job_worker") as ask:
            await ask("report_jobs", ids=self._jobs, token=TOKEN, duration=12, excerpt=_EXCERPT)

    async def apply(self) -> None:
        async with self._transaction("apply", "saga_orchestrator") as ask:
            jobs = await ask("lock_finished_jobs", ids=self._jobs)
            await ask("apply_jobs", ids=_ids(jobs))
            await ask("complete_sagas", ids=[job["saga_id"] for job in jobs])

    @asynccontextmanager
    async def _transaction(self, name: str, role: str) -> AsyncIterator[Ask]:
        engine, thread = self._engines[role], self._threads[role]
        statements = statements_of(__package__, engine.dialect)
        with self.meter.measuring(name, thread):
            async with engine.transaction() as transaction:

                async def ask(statement: str, **arguments: Any) -> Sequence[Row]:
                    with self.meter.measuring(statement, thread):
                        rows = await transaction.rows(statements[statement], **arguments)
                    assert statement in STATEMENTS or len(rows) == BATCH, f"{statement} yielded {len(rows)} rows"
                    return rows

                yield ask


async def thread_of(engine: Engine) -> int:
    """What the operating system calls the thread that serves this engine's one session."""
    async with engine.transaction() as transaction:
        (row,) = await transaction.rows(statements_of(__package__, engine.dialect)["thread"])
        return int(row["id"])


def _ids(rows: Sequence[Row]) -> list[int]:
    return [row["id"] for row in rows]
