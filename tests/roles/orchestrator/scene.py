"""Sagas, jobs and an orchestrator: what the tests of the orchestrator start from. Time is moved by data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.database import Database
from tests.support.rows import insert, insert_subscription
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.roles.orchestrator.orchestrator import Advanced, Orchestrator

SAGAS, JOBS, LETTERS = "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters"
POLICY = RetryPolicy(max_retry_limit=3, backoff=Backoff(base=5, longest=3600, jitter=0))


def fixed(window: int, active_jobs_max: int = 20_000) -> FlowLimits:
    """Windows that do not grow."""
    return FlowLimits(active_jobs_max, window_start=window, window_max=window)


LIMITS = fixed(2_000)


@dataclass
class Scene:
    database: Database
    orchestrator: Orchestrator

    @classmethod
    async def of(cls, database: Database) -> "Scene":
        return cls(database, Orchestrator(await database.open("saga_orchestrator"), POLICY, LIMITS))

    async def another(self, policy: RetryPolicy = POLICY, limits: FlowLimits = LIMITS, **options: Any) -> Orchestrator:
        """One more orchestrator, with sessions of its own and nothing in its memory."""
        return Orchestrator(await self.database.open("saga_orchestrator"), policy, limits, **options)

    async def sql(self, text: str) -> Sequence[Any]:
        return await self.database.sql(text)

    async def subscription(self, **columns: object) -> int:
        return await insert_subscription(self.database, **columns)

    async def subscriptions(self, count: int) -> list[int]:
        first = await self.subscription()
        values = ", ".join("('*', 'https://example.com/', true, true)" for _ in range(count - 1))
        await self.sql(f"INSERT INTO subscriptions (event_type, callback_url, active, verified) VALUES {values}")
        return [row["id"] for row in await self.sql(f"SELECT id FROM subscriptions WHERE id >= {first} ORDER BY id")]

    async def saga(self, subscription: int, payload: str = '{"a":  1}', **columns: object) -> int:
        """One event and its saga."""
        event = await insert(self.database, "events", event_type="a", payload=payload)
        return await insert(
            self.database, SAGAS, event_id=event, subscription_id=subscription, correlation_id=f"c{event}", **columns
        )

    async def sagas(self, subscription: int, count: int) -> None:
        values = ", ".join("('a', '{}')" for _ in range(count))
        before = await self.database.value("SELECT COALESCE(MAX(id), 0) FROM events")
        await self.sql(f"INSERT INTO events (event_type, payload) VALUES {values}")
        await self.sql(
            f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id)"
            f" SELECT id, {subscription}, correlation_id FROM events WHERE id > {before}"
        )

    async def finish(self, error_code: str = "", where: str = "true", retry_after: int | None = None) -> None:
        """Every active job ends, as a worker would report it: well, or with this error."""
        status = f"'Failed', error_code = '{error_code}'" if error_code else "'Completed', response_status = 200"
        later = f", retry_after = {retry_after}" if retry_after is not None else ""
        await self.sql(
            f"UPDATE {JOBS} SET status = {status}{later}, finished_at = created_at, worker_id = 'w'"
            f" WHERE status IN ('Pending', 'Leased') AND {where}"
        )

    async def make_due(self) -> None:
        """Retries that wait are due now, each a little after its last time."""
        await self.sql(f"UPDATE {SAGAS} SET next_attempt_at = updated_at WHERE status = 'PendingRetry'")

    async def fail(self, error_code: str = "http_500", **how: Any) -> Advanced:
        """What is due is started, fails, and is taken in."""
        await self.make_due()
        await self.step()
        await self.finish(error_code, **how)
        return await self.step()

    async def step(self) -> Advanced:
        return await self.orchestrator.step()

    async def until_idle(self, orchestrator: Orchestrator | None = None) -> None:
        """Steps until one has nothing to do."""
        one = orchestrator or self.orchestrator
        while (await one.step()).did_work:
            pass

    async def one(self, table: str, id: int) -> dict[str, Any]:
        (row,) = await self.sql(f"SELECT * FROM {table} WHERE id = {id}")
        return dict(row)

    async def all(self, table: str) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.sql(f"SELECT * FROM {table} ORDER BY id")]

    async def count(self, table: str, where: str = "true") -> int:
        return int(await self.database.value(f"SELECT COUNT(*) FROM {table} WHERE {where}"))

    async def by_status(self, table: str = SAGAS) -> dict[str, int]:
        rows = await self.sql(f"SELECT status, COUNT(*) AS count FROM {table} GROUP BY status")
        return {row["status"]: row["count"] for row in rows}
