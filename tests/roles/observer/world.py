"""A few events on their way: routed and started by the real roles, with results as a worker would report them."""

from dataclasses import dataclass

from tests.support.database import Database
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.pacing import FlowLimits
from tidings.decisions.retrying import Backoff
from tidings.model.ledger import Ledger
from tidings.roles.observer.reconciling import reconcile
from tidings.roles.orchestrator.orchestrator import Orchestrator
from tidings.roles.router.router import Router

ONE_ATTEMPT = RetryPolicy(max_retry_limit=1, backoff=Backoff(base=3600, longest=3600, jitter=0))
TWO_ATTEMPTS = RetryPolicy(max_retry_limit=2, backoff=Backoff(base=3600, longest=3600, jitter=0))
GOOD, BAD = 1, 2


@dataclass
class World:
    """Subscription 1 takes what it gets, subscription 2 does not."""

    database: Database
    policy: RetryPolicy = ONE_ATTEMPT

    async def set(self) -> None:
        for gate in ("routing", "router:default"):
            await self.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")
        await self.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
        for name in ("good", "bad"):
            await self.sql(
                "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
                f" VALUES ('*', 'https://{name}.example/', true, true)"
            )

    async def sql(self, text: str) -> None:
        await self.database.sql(text)

    async def publish(self, count: int = 1, event_type: str = "order.paid") -> None:
        for _ in range(count):
            await self.sql(f"INSERT INTO events (event_type, payload) VALUES ('{event_type}', '{{}}')")

    async def route(self) -> None:
        router = Router(await self.database.open("event_router"), "default")
        await router.step()
        await router.close()

    async def advance(self) -> None:
        """Takes in what was reported, and starts what is due."""
        engine = await self.database.open("saga_orchestrator")
        await Orchestrator(engine, self.policy, FlowLimits(20_000, 2_000, 2_000)).step()

    async def report(self) -> None:
        for subscription, status, error in ((GOOD, "Completed", "NULL"), (BAD, "Failed", "'http_503'")):
            await self.sql(
                f"UPDATE webhook_delivery_jobs SET status = '{status}', error_code = {error}, finished_at = created_at"
                f" WHERE status = 'Pending' AND subscription_id = {subscription}"
            )

    async def deliver(self, count: int) -> None:
        """From the log to the end: half of it delivered, half of it given up."""
        await self.publish(count)
        await self.route()
        await self.advance()
        await self.report()
        await self.advance()

    async def ledger(self) -> Ledger:
        *_, whole = [one async for one in reconcile(await self.database.open("observer"), at_once=3)]
        return whole


async def without_guards(database: Database) -> None:
    """What must not be can now be done, for a test of those who notice it."""
    if database.family == "postgresql":
        rows = await database.sql("SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()")
        for row in rows:
            await database.sql(f"ALTER TABLE {row['name']} DISABLE TRIGGER USER")
    else:
        rows = await database.sql(
            "SELECT trigger_name AS name FROM information_schema.triggers"
            f" WHERE trigger_schema = '{database.names.schema}'",
            role="admin",
        )
        for row in rows:
            await database.sql(f"DROP TRIGGER {database.names.schema}.{row['name']}", role="admin")
