"""The product's real steps on a real installation, driven one by one; only the endpoints are played by the test."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.model.plain import MAX_RESETS
from tests.support.database import Database
from tests.support.waiting import eventually, pause
from tidings.courier import Request, Result
from tidings.db.engine import Engine
from tidings.db.statements import Statement
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.roles.cleaner.cleaner import Cleaner
from tidings.roles.dead_letters.requeueing import requeue
from tidings.roles.orchestrator.hints import Hints
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.router.router import Router
from tidings.roles.worker.worker import Worker, WorkerLimits
from tidings.vault import Vault

# Nothing is due again by itself: the test says when.
POLICY = RetryPolicy(3, Backoff(3600, 3600, 0))
WORK = WorkerLimits(lease_seconds=600, slots=400, max_in_flight=100, timeout=60, margin=1, claim_hint=False)


class Answers:
    """Stands where the network is: each request waits until the test says what came back."""

    def __init__(self) -> None:
        self.waiting: dict[tuple[str, str, str], list[asyncio.Future[Result]]] = defaultdict(list)

    async def send(self, request: Request) -> Result:
        headers = dict(request.headers)
        key = (headers["tidings-correlation-id"], request.url.rpartition("/")[2], headers["tidings-attempt"])
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self.waiting[key].append(answer)
        return await answer

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class Steps:
    """One installation; examples follow each other on it, each with subscriptions and events of its own."""

    database: Database
    admin: Engine
    router: Router
    orchestrator: Orchestrator
    cleaner: Cleaner
    operator: Engine
    worker_engine: Engine
    workers: list[Worker] = field(default_factory=list)
    answers: list[Answers] = field(default_factory=list)
    hired: int = 0
    first_event: int = 1
    first_subscription: int = 1

    @classmethod
    async def open(cls, database: Database) -> "Steps":
        made = cls(
            database,
            await database.open("schema_owner", size=1),
            Router(await database.open("event_router", size=3), "default"),
            Orchestrator(await database.open("saga_orchestrator"), POLICY, FlowLimits(5000, 1000, 1000)),
            Cleaner(await database.open("lease_cleaner"), MAX_RESETS, patience=0),
            await database.open("dead_letter_operator"),
            await database.open("job_worker", size=6),
        )
        for gate in ("routing", "router:default"):
            await made.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        await made.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        return made

    async def close(self) -> None:
        await self.router.close()
        await self.database.close()

    async def sql(self, text: str) -> Sequence[Any]:
        statement = Statement("test.sql", text.replace("{", "{{").replace("}", "}}"), ())
        return await self.admin.step(lambda transaction: transaction.rows(statement))

    async def begin(self, subscriptions: int) -> None:
        """Anew: what others have left is put out of the way, by data."""
        await self.sql("UPDATE webhook_delivery_jobs SET status = 'Leased' WHERE status = 'Pending'")
        await self.sql("UPDATE webhook_delivery_jobs SET status = 'Failed' WHERE status = 'Leased'")
        await self.sql("UPDATE webhook_delivery_jobs SET applied_at = created_at WHERE applied_at IS NULL")
        await self.sql("UPDATE subscriptions SET active = false WHERE active")
        # What was published and not routed goes to nobody.
        await self.router.step()
        self.first_event = (await self.sql("SELECT COALESCE(MAX(id), 0) + 1 AS n FROM events"))[0]["n"]
        self.first_subscription = (await self.sql("SELECT COALESCE(MAX(id), 0) + 1 AS n FROM subscriptions"))[0]["n"]
        for number in range(subscriptions):
            await self.sql(
                "INSERT INTO subscriptions (event_type, callback_url, active, verified, max_retry_limit)"
                f" VALUES ('*', 'https://example.com/{number}', true, true, 3)"
            )
        self.workers, self.answers = [], []
        for _ in range(2):
            self.hire()

    def hire(self, place: int | None = None) -> None:
        answers = Answers()
        self.hired += 1
        vault = Vault(["the key of the tests"])
        worker = Worker(self.worker_engine, answers, vault, f"w{self.hired}", WORK)  # type: ignore[arg-type]
        if place is None:
            self.workers.append(worker)
            self.answers.append(answers)
        else:
            self.workers[place], self.answers[place] = worker, answers

    async def publish(self, number: int) -> None:
        await self.sql(
            "INSERT INTO events (event_type, correlation_id, payload)"
            f" VALUES ('a', 'e{self.first_event + number}', '1')"
        )

    async def lease(self, place: int) -> None:
        """Also sent: the requests wait for their answers."""
        while await self.workers[place].step():
            await pause(0)
        await pause(0)

    async def answer(self, place: int, event: int, subscription: int, attempt: int, went_well: bool) -> None:
        """To the request that has waited longest of those that look the same."""
        key = (f"e{self.first_event + event}", str(subscription), str(attempt))
        worker = self.workers[place]
        before = worker.in_flight
        status, code = (200, None) if went_well else (500, "http_500")
        self.answers[place].waiting[key].pop(0).set_result(Result(status, code, b"", None, 1))

        def is_heard() -> bool:
            return worker.in_flight < before and not worker._reporter.unheard

        await eventually(is_heard, 10, "the report to be stored")

    async def crash(self, place: int) -> None:
        """As a process that is killed: nobody says a word."""
        worker = self.workers[place]
        speaking = f"outbox of {worker._worker_id}"
        tasks = [*worker._sending, *(task for task in asyncio.all_tasks() if task.get_name() == speaking)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.hire(place)

    async def expire(self) -> None:
        await self.sql("UPDATE webhook_delivery_jobs SET lease_until = created_at WHERE status = 'Leased'")

    async def make_due(self) -> None:
        """Time goes on, played by data: hours pass for the sagas and none for the orchestrator, whose hints go too."""
        await self.sql(
            "UPDATE webhook_delivery_sagas SET next_attempt_at = next_attempt_at - INTERVAL '2' HOUR"
            f" WHERE status = 'PendingRetry' AND subscription_id >= {self.first_subscription}"
        )
        self.orchestrator._hints = Hints()

    async def requeue(self) -> None:
        rows = await self.sql(f"SELECT id FROM dead_letters WHERE subscription_id >= {self.first_subscription}")
        if rows:
            await requeue(self.operator, [row["id"] for row in rows], "test")

    async def set(self, subscription: int, change: str) -> None:
        await self.sql(f"UPDATE subscriptions SET {change} WHERE id = {self.first_subscription + subscription}")

    async def told(self) -> dict[tuple[int, int, int], tuple[object, ...]]:
        """What the tables say of this example, in the words of the plain model."""
        mine = f"subscription_id >= {self.first_subscription}"
        jobs: dict[int, list[tuple[object, ...]]] = defaultdict(list)
        for row in await self.sql(
            "SELECT saga_id, attempt_no, status, lease_resets, applied_at IS NOT NULL AS is_applied"
            f" FROM webhook_delivery_jobs WHERE {mine} ORDER BY attempt_no"
        ):
            applied = bool(row["is_applied"])
            jobs[row["saga_id"]].append((row["attempt_no"], row["status"], row["lease_resets"], applied))
        letters = {row["saga_id"] for row in await self.sql(f"SELECT saga_id FROM dead_letters WHERE {mine}")}
        return {
            (row["event_id"] - self.first_event, row["subscription_id"] - self.first_subscription, row["generation"]): (
                row["status"],
                row["attempt_count"],
                tuple(jobs[row["id"]]),
                row["id"] in letters,
            )
            for row in await self.sql(f"SELECT * FROM webhook_delivery_sagas WHERE {mine}")
        }
