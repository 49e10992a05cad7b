"""Stories of long ago, finished and not: what the tests of retention start from."""

from typing import Any

from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.roles.retention.retention import Retention

LONG_AGO, RECENTLY = "2020-01-01 10:00:00", "2099-01-01 10:00:00"
KEEP = 30 * 86_400.0
TABLES = (
    "events",
    "route_attempts",
    "route_dead_letters",
    "webhook_delivery_sagas",
    "webhook_delivery_jobs",
    "dead_letters",
)


class Scene:
    """One installation, into which its owner writes whatever is wanted."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    async def of(cls, database: Database) -> "Scene":
        scene = cls(database)
        await scene.run(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
            " VALUES ('*', 'https://one.example/', true, true), ('*', 'https://two.example/', true, true)"
        )
        return scene

    async def run(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in await self.database.sql(text)]

    async def value(self, text: str) -> Any:
        return await self.database.value(text)

    async def event(self, at: str = LONG_AGO, domain: str = "default") -> int:
        await self.run(
            f"INSERT INTO events (event_type, event_domain, payload, created_at) VALUES ('a', '{domain}', '1', '{at}')"
        )
        return int(await self.value("SELECT MAX(id) FROM events"))

    async def attempt(
        self, event: int, status: str = "sent", *, kind: str = "webhook", matched: int = 1, at: str = LONG_AGO
    ) -> None:
        await self.run(
            "INSERT INTO route_attempts"
            " (event_id, worker_name, route_kind, status, matched, idempotency_key, created_at)"
            f" SELECT {event}, 'default', '{kind}', '{status}', {matched}, CONCAT('k', COUNT(*), '-', {event}), '{at}'"
            " FROM route_attempts"
        )

    async def saga(
        self,
        event: int,
        status: str = "Completed",
        *,
        subscription: int = 1,
        generation: int = 0,
        jobs: int = 1,
        applied: bool = True,
        at: str = LONG_AGO,
    ) -> int:
        """Jobs come before the end, as the guards want it."""
        await self.run(
            "INSERT INTO webhook_delivery_sagas"
            " (event_id, subscription_id, generation, status, correlation_id, updated_at)"
            f" VALUES ({event}, {subscription}, {generation}, 'InProgress', 'c', '{at}')"
        )
        made = int(await self.value("SELECT MAX(id) FROM webhook_delivery_sagas"))
        for number in range(1, jobs + 1):
            job_status = "Completed" if status == "Completed" and number == jobs else "Failed"
            await self.run(
                "INSERT INTO webhook_delivery_jobs"
                " (saga_id, subscription_id, attempt_at, attempt_no, status, applied_at)"
                f" VALUES ({made}, {subscription}, '2020-01-01 10:00:0{number}', {number}, '{job_status}',"
                f" {repr(at) if applied else 'NULL'})"
            )
        await self.run(f"UPDATE webhook_delivery_sagas SET status = '{status}' WHERE id = {made}")
        if status == "DeadLettered":
            await self.run(
                "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot)"
                f" VALUES ({made}, {event}, {subscription}, '1')"
            )
        return made

    async def resolved_letter(self, event: int) -> None:
        await self.run(
            "INSERT INTO route_dead_letters"
            " (event_id, worker_name, idempotency_key, event_snapshot, error, resolved_at)"
            f" VALUES ({event}, 'default', 'k{event}', '1', 'e', '{LONG_AGO}')"
        )

    async def finished(self, at: str = LONG_AGO, domain: str = "default") -> int:
        """Routed at the second try; delivered to one, given up for the other, requeued for it and delivered then."""
        event = await self.event(at, domain)
        await self.attempt(event, "failed", matched=0)
        await self.resolved_letter(event)
        await self.attempt(event, "sent", matched=2)
        await self.saga(event, "Completed", subscription=1, jobs=2)
        await self.saga(event, "DeadLettered", subscription=2, jobs=1)
        await self.saga(event, "Completed", subscription=2, generation=1, jobs=1)
        return event

    async def router(self, position: int, last: int | None = None, domain: str = "*", name: str = "default") -> None:
        await self.run(
            "INSERT INTO route_worker_cursors (worker_name, event_domain, position, last_event_id)"
            f" VALUES ('{name}', '{domain}', {position}, {last or 'NULL'})"
        )

    async def routed_up_to(self, event: int) -> None:
        await self.router(event + 1, event + 1)

    async def task(self, biz_key: object, biz_type: str = "report", status: int = 2) -> None:
        await self.run(
            f"INSERT INTO sys_pending_tasks (biz_type, biz_key, status) VALUES ('{biz_type}', '{biz_key}', {status})"
        )

    async def archived(self, id: int, biz_key: object, at: str = LONG_AGO) -> None:
        await self.run(
            "INSERT INTO sys_pending_tasks_history (id, biz_type, biz_key, status, archived_at)"
            f" VALUES ({id}, 'report', '{biz_key}', 2, '{at}')"
        )

    async def events(self) -> list[int]:
        return [id for (id,) in await self.run("SELECT id FROM events ORDER BY id")]

    async def counts(self) -> dict[str, int]:
        return {table: await self.value(f"SELECT COUNT(*) FROM {table}") for table in TABLES}

    async def orphans(self) -> list[str]:
        """Tables with rows of which the event, or the saga, is gone."""
        found = []
        for table in TABLES[1:]:
            parent = "events" if table != "webhook_delivery_jobs" else "webhook_delivery_sagas"
            column = "event_id" if parent == "events" else "saga_id"
            lost = f"SELECT COUNT(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM {parent} p WHERE p.id = t.{column})"
            found += [table] if await self.value(lost) else []
        return found

    async def totals(self) -> dict[str, dict[str, int]]:
        rows = await self.database.sql("SELECT * FROM retention_totals ORDER BY day")
        return {
            row["day"]: {name: value for name, value in row.items() if value and name not in ("day", "updated_at")}
            for row in rows
        }

    async def retention(self, keep: float | None = KEEP, engine: Engine | None = None, **options: Any) -> Retention:
        return Retention(engine or await self.database.open("retention"), keep, **options)

    async def remove(self, **options: Any) -> None:
        """Until there is nothing old left to look at."""
        one = await self.retention(**options)
        while await one.step():
            pass
