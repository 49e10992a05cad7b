"""Sagas in which a step of the orchestrator meets everything it knows: played again and again, each time with new ones.

First attempts, results of every kind, retries that are due, sagas to be buried for both reasons, a result that nobody
waits for.
"""

from dataclasses import dataclass
from typing import Any

from tests.faults.ending import Ending
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.flow import OWNER
from tidings.roles.orchestrator.orchestrator import Orchestrator

POLICY = RetryPolicy(max_retry_limit=2, backoff=Backoff(base=3600, longest=3600, jitter=0))
LIMITS = FlowLimits(active_jobs_max=20_000, window_start=2_000, window_max=2_000)
JOB_COLUMNS = "saga_id, subscription_id, attempt_at, attempt_no, status, error_code"

# (status, attempts so far, due, then the newest job's status and error code)
SAGAS = [
    *[("Pending", 0, "2020-01-01", "", "")] * 3,
    *[("PendingRetry", 1, "2020-01-02", "Failed", "timeout")] * 2,
    ("PendingRetry", 1, "2100-01-01", "Failed", "timeout"),
    ("PendingRetry", 2, "2020-01-02", "Failed", "http_500"),
    *[("InProgress", 0, "2020-01-03", "Completed", "")] * 2,
    *[("InProgress", 0, "2020-01-03", "Failed", "http_503")] * 2,
    *[("InProgress", 1, "2020-01-03", "Failed", "http_404")] * 2,
    ("Completed", 1, "2020-01-03", "Failed", "late"),
]


@dataclass(frozen=True)
class State(Ending):
    """What has become of the sagas, in numbers that do not depend on when and how often it was played."""

    sagas: list[tuple[Any, ...]]
    jobs: list[tuple[Any, ...]]
    dead_letters: list[tuple[Any, ...]]


class Story:
    """One installation, and an orchestrator that nobody disturbs."""

    def __init__(self, database: Database, owner: Session) -> None:
        self._database, self._owner = database, owner
        self._base = 0

    @classmethod
    async def of(cls, database: Database) -> "Story":
        story = cls(database, await connect(database.url(OWNER)))
        for name in ("one", "two"):
            await story._owner.run(
                "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
                f" VALUES ('*', 'https://{name}.example/', true, true)"
            )
        return story

    async def close(self) -> None:
        await self._owner.close()

    async def begin(self) -> None:
        """The sagas before the step that is looked at; what was played before is of no more concern."""
        ((self._base,),) = await self._owner.run("SELECT COALESCE(MAX(id), 0) FROM webhook_delivery_sagas")
        # The window of one is known already, that of the other is not.
        await self._owner.run("DELETE FROM delivery_lanes")
        await self._owner.run("INSERT INTO delivery_lanes (subscription_id, window_size) VALUES (1, 2000)")
        for number, (status, attempts, due, job, error) in enumerate(SAGAS, start=self._base + 1):
            payload, subscription = f'{{"n":  {number - self._base}}}', 1 + (number - self._base) % 2
            await self._owner.run(f"INSERT INTO events (event_type, payload) VALUES ('a', '{payload}')")
            await self._owner.run(
                "INSERT INTO webhook_delivery_sagas"
                " (event_id, subscription_id, correlation_id, attempt_count, next_attempt_at, final_error_code)"
                f" SELECT MAX(id), {subscription}, 'c', {attempts}, '{due}', NULLIF('{error}', '') FROM events"
            )
            if job:
                is_new = status in ("InProgress", "Completed")
                await self._owner.run(
                    f"INSERT INTO webhook_delivery_jobs ({JOB_COLUMNS}, applied_at)"
                    f" VALUES ({number}, {subscription}, '2020-01-01', {attempts + is_new}, '{job}',"
                    f" NULLIF('{error}', ''), {'NULL' if is_new else repr('2020-01-01')})"
                )
            await self._owner.run(f"UPDATE webhook_delivery_sagas SET status = '{status}' WHERE id = {number}")

    async def finish(self, orchestrator: Orchestrator | None = None) -> None:
        one = orchestrator or Orchestrator(await self._database.open("saga_orchestrator"), POLICY, LIMITS)

        async def is_finished() -> bool:
            # What a step that was cut has locked is passed over until the server has noticed.
            await one.look()
            await one.step()
            ((left,),) = await self._owner.run(
                "SELECT (SELECT COUNT(*) FROM webhook_delivery_sagas WHERE status IN ('Pending', 'PendingRetry')"
                " AND next_attempt_at < '2021-01-01') + (SELECT COUNT(*) FROM webhook_delivery_jobs"
                " WHERE status IN ('Completed', 'Failed') AND applied_at IS NULL)"
            )
            return not left

        await eventually(is_finished, what="the orchestrator to finish")

    async def state(self) -> State:
        base, later = self._base, "next_attempt_at > '2021-01-01'"
        return State(
            await self._rows(
                f"SELECT id - {base}, status, attempt_count, final_error_code, {later} FROM webhook_delivery_sagas"
                f" WHERE id > {base} ORDER BY id"
            ),
            await self._rows(
                f"SELECT saga_id - {base}, attempt_no, status, error_code, applied_at IS NULL, lease_token"
                f" FROM webhook_delivery_jobs WHERE saga_id > {base} ORDER BY saga_id, attempt_no"
            ),
            await self._rows(
                f"SELECT saga_id - {base}, subscription_id, final_error_code, payload_snapshot FROM dead_letters"
                f" WHERE saga_id > {base} ORDER BY saga_id"
            ),
        )

    async def _rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._owner.run(text)]
