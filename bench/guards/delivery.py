"""Takes batches through one installation, from event to completed saga, each statement as its role's login.

The rows are locked first, as the product does; only the statements that write are measured.
"""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

from tests.support.database import Database

from bench.guards.measuring import Meter
from tidings.db.engine import Engine
from tidings.db.session import Row
from tidings.db.statements import Statement, load_statements

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
_PAYLOAD = '{"order": 4711, "note": "' + "x" * 970 + '"}'
_EXCERPT = b'{"received": true}'

Ask = Callable[..., Awaitable[Sequence[Row]]]


class Delivery:
    """`stages` are its transactions in their order; each goes on with what the one before it left."""

    def __init__(self, database: Database) -> None:
        self.meter = Meter()
        self._database = database
        self._engines: dict[str, Engine] = {}
        self._processes: dict[str, int] = {}
        self._events: Sequence[Row] = ()
        self._jobs: list[int] = []

    async def open(self) -> Self:
        for role in ROLES:
            engine = await self._database.open(role, size=1)
            self._engines[role] = engine
            self._processes[role] = await self._process(engine)
        return self

    @property
    def stages(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        return (self.publish, self.route, self.start, self.lease, self.report, self.apply)

    async def publish(self) -> None:
        events = [("order.paid", _PAYLOAD, str(uuid.uuid4()), str(uuid.uuid4())) for _ in range(BATCH)]
        async with self._acting("event_ingest_writer") as ask:
            self._events = await ask("insert_events", events=events)

    async def route(self) -> None:
        sagas = [(event["id"], 1, str(uuid.uuid4())) for event in self._events]
        async with self._acting("event_router") as ask:
            await ask("insert_sagas", sagas=sagas)

    async def start(self) -> None:
        async with self._acting("saga_orchestrator") as ask:
            sagas = await ask("lock_pending_sagas", batch=BATCH)
            await ask("start_sagas", ids=_ids(sagas))
            await ask("insert_jobs", jobs=[(s["id"], s["subscription_id"], s["next_attempt_at"], 1) for s in sagas])

    async def lease(self) -> None:
        async with self._acting("job_worker") as ask:
            self._jobs = _ids(await ask("lock_pending_jobs", batch=BATCH))
            await ask("lease_jobs", ids=self._jobs, seconds=60.0, worker="bench")

    async def report(self) -> None:
        async with self._acting("job_worker") as ask:
            await ask("report_jobs", ids=self._jobs, duration=12, excerpt=_EXCERPT)

    async def apply(self) -> None:
        async with self._acting("saga_orchestrator") as ask:
            jobs = await ask("lock_finished_jobs", ids=self._jobs)
            await ask("apply_jobs", ids=_ids(jobs))
            await ask("complete_sagas", ids=[job["saga_id"] for job in jobs])

    @asynccontextmanager
    async def _acting(self, role: str) -> AsyncIterator[Ask]:
        engine = self._engines[role]
        statements = load_statements(__package__, engine.dialect)
        async with engine.transaction() as transaction:

            async def ask(name: str, **arguments: Any) -> Sequence[Row]:
                if name in STATEMENTS:
                    with self.meter.measuring(name, self._processes[role]):
                        return await transaction.rows(statements[name], **arguments)
                rows = await transaction.rows(statements[name], **arguments)
                assert len(rows) == BATCH, f"{name} yielded {len(rows)} rows"
                return rows

            yield ask

    async def _process(self, engine: Engine) -> int:
        """PostgreSQL has one process for each session, MariaDB one for all of them."""
        if engine.dialect.family == "mysql":
            return self._database.server.pid
        async with engine.transaction() as transaction:
            (row,) = await transaction.rows(Statement("bench.process", "SELECT pg_backend_pid() AS pid", ()))
            return int(row["pid"])


def _ids(rows: Sequence[Row]) -> list[int]:
    return [row["id"] for row in rows]
