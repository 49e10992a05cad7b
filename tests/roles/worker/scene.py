"""Jobs, a receiver and workers: what the tests of the worker start from. Time is moved by data."""

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Any

from tests.support.at_work import at_work
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.receiver import Receiver
from tests.support.rows import insert_subscription
from tests.support.waiting import eventually
from tidings.courier import Courier, Guard
from tidings.db.engine import Engine
from tidings.roles.worker.worker import Worker, WorkerLimits
from tidings.vault import Vault, seal_secret

LIMITS = WorkerLimits(lease_seconds=60, slots=64, max_in_flight=16, timeout=15, margin=5)
SHORT = WorkerLimits(lease_seconds=2, slots=64, max_in_flight=16, timeout=1.5, margin=0.25)
SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
SECOND_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def loopback_courier(kind: type[Courier] = Courier) -> Courier:
    return kind(Guard(allow_networks=[ip_network("127.0.0.0/8")], allow_http_hosts=["127.0.0.1"]))


@dataclass
class Scene:
    database: Database
    receiver: Receiver
    vault: Vault = field(default_factory=lambda: Vault(["the key of the tests"]))
    workers: int = 0
    couriers: list[Courier] = field(default_factory=list)

    async def sql(self, text: str) -> Sequence[Any]:
        return await self.database.sql(text)

    async def subscription(self, path: str = "/", secret: str = SECRET, **columns: object) -> int:
        made = await insert_subscription(self.database, callback_url=self.receiver.url(path), **columns)
        await self.set_secrets(made, (secret, 0, 0))
        return made

    async def set_secrets(self, subscription: int, *secrets: tuple[str, int, int], vault: Vault | None = None) -> None:
        """Newest first: the secret, how long ago it was made, and for how long the older ones stay valid after it."""
        now = time.time()
        column = b"".join(
            seal_secret(
                vault or self.vault, subscription, text, created_at=int((now - ago) * 1_000_000), overlap=overlap
            )
            for text, ago, overlap in secrets
        )
        literal = Words(self.database).binary(column)
        await self.sql(f"UPDATE subscriptions SET secrets = {literal} WHERE id = {subscription}")

    async def jobs(
        self, subscription: int, count: int = 1, payload: str = "{}", attempt_no: int = 1, ready_since: float = 0
    ) -> list[int]:
        """Events, their sagas in progress, and a job for each."""
        before = await self.database.value("SELECT COALESCE(MAX(id), 0) FROM events")
        values = ", ".join([f"('order.paid', '{payload}')"] * count)
        await self.sql(f"INSERT INTO events (event_type, payload) VALUES {values}")
        await self.sql(
            "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status)"
            f" SELECT id, {subscription}, correlation_id, 'InProgress' FROM events WHERE id > {before} ORDER BY id"
        )
        await self.sql(
            "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no, lease_until)"
            f" SELECT id, subscription_id, next_attempt_at, {attempt_no}, {self._before_it_was_made(ready_since)}"
            f" FROM webhook_delivery_sagas WHERE event_id > {before} ORDER BY id"
        )
        rows = await self.sql(
            "SELECT j.id FROM webhook_delivery_jobs j JOIN webhook_delivery_sagas s ON s.id = j.saga_id"
            f" WHERE s.event_id > {before} ORDER BY j.id"
        )
        return [row["id"] for row in rows]

    async def ready_since(self, job: int, seconds: float) -> None:
        """It may be leased since so long, or from so long from now on if that is negative."""
        since = self._before_it_was_made(seconds)
        await self.sql(f"UPDATE webhook_delivery_jobs SET lease_until = {since} WHERE id = {job}")

    def _before_it_was_made(self, seconds: float) -> str:
        return Words(self.database).later("created_at", round(-seconds * 1_000_000), "microsecond")

    async def reset(self, job: int) -> None:
        """As the cleaner does when a lease has expired."""
        await self.sql(
            "UPDATE webhook_delivery_jobs SET status = 'Pending', lease_until = created_at, worker_id = NULL,"
            f" lease_token = lease_token - 1, lease_resets = lease_resets + 1 WHERE id = {job}"
        )

    async def job(self, id: int) -> dict[str, Any]:
        (row,) = await self.sql(f"SELECT * FROM webhook_delivery_jobs WHERE id = {id}")
        return dict(row)

    async def arrived(self) -> list[int]:
        """The jobs of the requests, in the order in which they came to the receiver."""
        rows = await self.sql(
            "SELECT j.id, s.correlation_id FROM webhook_delivery_jobs j"
            " JOIN webhook_delivery_sagas s ON s.id = j.saga_id"
        )
        job_of = {row["correlation_id"]: row["id"] for row in rows}
        return [job_of[request.headers["tidings-correlation-id"]] for request in self.receiver.requests]

    async def statuses(self) -> dict[str, int]:
        rows = await self.sql("SELECT status, COUNT(*) AS jobs FROM webhook_delivery_jobs GROUP BY status")
        return {row["status"]: row["jobs"] for row in rows}

    async def worker(
        self, limits: WorkerLimits = LIMITS, engine: Engine | None = None, courier: Courier | None = None, **other: Any
    ) -> Worker:
        self.workers += 1
        opened = engine or await self.database.open("job_worker", size=3)
        self.couriers.append(courier or loopback_courier())
        return Worker(opened, self.couriers[-1], self.vault, f"worker{self.workers}", replace(limits, **other))

    async def close(self) -> None:
        while self.couriers:
            await self.couriers.pop().close()

    def hang_up(self) -> None:
        """The receiver breaks off whatever hangs, and answers from now on."""
        self.receiver._answers.clear()
        for connection in self.receiver._connections:
            connection.cancel()

    def working(self, *workers: Worker) -> AbstractAsyncContextManager[None]:
        return at_work("worker", *workers)

    async def finished(self, jobs: Sequence[int]) -> None:
        async def is_so() -> bool:
            ids = ", ".join(map(str, jobs))
            finished = f"status IN ('Completed', 'Failed') AND id IN ({ids})"
            count = await self.database.value(f"SELECT COUNT(*) FROM webhook_delivery_jobs WHERE {finished}")
            return bool(count == len(jobs))

        await eventually(is_so, 20, "the jobs to be finished")
