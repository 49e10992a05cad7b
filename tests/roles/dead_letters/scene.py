"""Sagas that have ended, and the operator who gives them a next generation."""

import datetime
from collections.abc import Sequence
from typing import Any

from tests.support.database import Database
from tidings.db.engine import Engine
from tidings.roles.dead_letters.operations import Filter

SAGAS = "webhook_delivery_sagas"
NEVER = datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC)
EVER = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
EVERYTHING = Filter(EVER, NEVER)


class Scene:
    def __init__(self, database: Database, engine: Engine) -> None:
        self.database = database
        self.engine = engine

    async def operator(self) -> Engine:
        """One more, with sessions of its own."""
        return await self.database.open("dead_letter_operator", size=4)

    async def sql(self, text: str) -> Sequence[Any]:
        return await self.database.sql(text)

    async def subscription(self, **columns: object) -> int:
        columns = {
            "event_type": "'*'",
            "callback_url": "'https://a.example/'",
            "active": True,
            "verified": True,
            **columns,
        }
        values = ", ".join(str(value) for value in columns.values())
        await self.sql(f"INSERT INTO subscriptions ({', '.join(columns)}) VALUES ({values})")
        return int(await self.database.value("SELECT MAX(id) FROM subscriptions"))

    async def ended(self, subscription: int, count: int = 1, status: str = "Completed") -> list[int]:
        """So many sagas that have ended so; returns their ids."""
        event = await self.database.value("SELECT COALESCE(MAX(id), 0) FROM events")
        before = await self.database.value(f"SELECT COALESCE(MAX(id), 0) FROM {SAGAS}")
        values = ", ".join("('a', '{\"a\":  1}')" for _ in range(count))
        await self.sql(f"INSERT INTO events (event_type, payload) VALUES {values}")
        await self.sql(
            f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id, status, attempt_count, final_error_code)"
            f" SELECT id, {subscription}, correlation_id, '{status}', 16, 'timeout' FROM events WHERE id > {event}"
            " ORDER BY id"
        )
        return [row["id"] for row in await self.sql(f"SELECT id FROM {SAGAS} WHERE id > {before} ORDER BY id")]

    async def letters(
        self, subscription: int, count: int = 1, error_code: str = "timeout", failed_at: str = "2026-01-15"
    ) -> list[int]:
        """So many dead letters; returns their ids."""
        sagas = await self.ended(subscription, count, "DeadLettered")
        before = await self.database.value("SELECT COALESCE(MAX(id), 0) FROM dead_letters")
        await self.sql(
            "INSERT INTO dead_letters"
            " (saga_id, event_id, subscription_id, final_error_code, failed_at, payload_snapshot)"
            f" SELECT s.id, s.event_id, s.subscription_id, '{error_code}', '{failed_at}', e.payload"
            f" FROM {SAGAS} s JOIN events e ON e.id = s.event_id WHERE s.id >= {sagas[0]} ORDER BY s.id"
        )
        return [row["id"] for row in await self.sql(f"SELECT id FROM dead_letters WHERE id > {before} ORDER BY id")]

    async def all(self, table: str) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.sql(f"SELECT * FROM {table} ORDER BY id")]

    async def next_generation(self) -> list[dict[str, Any]]:
        return [row for row in await self.all(SAGAS) if row["generation"] > 0]

    async def audited(self) -> list[tuple[str, str, str]]:
        return [(row["actor"], row["action"], row["subject"]) for row in await self.all("audit_log")]
