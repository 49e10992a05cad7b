"""A log in which a pass of the router meets everything it knows: played again and again, each time above the last one.

New events, late ones in a narrow and in a wide hole, tasks, events decided before and rewound, events that can't be
routed, holes that open and close.
"""

import re
from dataclasses import dataclass
from typing import Any

from tests.faults.ending import Ending
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.flow import OWNER
from tidings.roles.router.passes import Outcome
from tidings.roles.router.router import Router
from tidings.roles.routes import routers as admin

# Twice as many ids that never come are more than a pass of such a batch looks at one by one.
BURNT = 260
BATCH = 100
POISON = "poison"
COUNTS = ("sent_count", "dry_run_count", "disabled_count", "skipped_count", "failed_count")


@dataclass(frozen=True)
class State(Ending):
    """What routing has come to, in numbers that do not depend on when and where in the log it was."""

    attempts: list[tuple[Any, ...]]
    sagas: list[tuple[Any, ...]]
    tasks: list[tuple[Any, ...]]
    dead_letters: list[tuple[Any, ...]]
    cursor: tuple[Any, ...]
    holes: list[tuple[Any, ...]]


class Story:
    """One installation, its producers, and a router that nobody disturbs."""

    def __init__(self, database: Database, owner: Session, producers: list[Session], engine: Engine) -> None:
        self._database = database
        self._owner = owner
        self._narrow, self._wide, self._other = producers
        self._engine = engine
        self._base = 0
        self._before: tuple[int, ...] = ()

    @classmethod
    async def of(cls, database: Database) -> "Story":
        owner = await connect(database.url(OWNER))
        producers = [await connect(database.url("event_ingest_writer")) for _ in range(3)]
        story = cls(database, owner, producers, await database.open("event_router"))
        await story._set_up()
        return story

    async def close(self) -> None:
        await self._owner.run("ALTER TABLE webhook_delivery_sagas DROP CONSTRAINT saga_not_poisoned")
        for session in (self._owner, self._narrow, self._wide, self._other):
            await session.close()

    async def begin(self) -> None:
        """Up to the moment before the passes that are looked at: always the same, at another place in the log."""
        ((self._base,),) = await self._owner.run("SELECT COALESCE(MAX(id), 0) FROM events")
        await self._owner.run("UPDATE routes SET enabled = false WHERE event_type = 'again.*'")
        await self._leave_holes()
        await self._insert(self._other, "order.paid", "order.paid", "again.paid", "job.done")
        await self._insert(self._other, "order.paid", correlation_id=POISON)
        await self._insert(self._other, "order.held", correlation_id=POISON)
        await self.finish()
        self._before = await self._counts()
        await self._narrow.run("COMMIT")
        await self._wide.run("COMMIT")
        await self._go_back()
        await self._insert(self._other, *["order.paid"] * 3, "job.done", "other.thing")
        await self._insert(self._other, "order.paid", correlation_id=POISON)
        await self._burn(2)
        await self._insert(self._other, "order.paid", "job.done")

    async def finish(self, router: Router | None = None) -> None:
        """Passes until nothing is left to do, and no hole but those that wait for a producer."""
        passing = router or Router(self._engine, batch=BATCH)

        async def is_idle() -> bool:
            # A pass that was cut may hold the cursor until the server has noticed.
            return (await passing.step()).outcome is Outcome.IDLE

        await eventually(is_idle, what="the router to finish")
        await passing.close()

    async def state(self) -> State:
        base, new = self._base, f"event_id > {self._base}"
        place = f"position - {base}, last_event_id - {base}"
        key = "CAST(biz_key AS DECIMAL)"
        ((position, last),) = await self._rows(f"SELECT {place} FROM route_worker_cursors")
        attempts = await self._rows(
            f"SELECT event_id - {base}, worker_name, route_id, route_kind, status, matched, detail, attempt_no, reason"
            f" FROM route_attempts WHERE {new} ORDER BY event_id, route_id, attempt_no"
        )
        letters = await self._rows(
            f"SELECT event_id - {base}, worker_name, resolved_at IS NULL, error FROM route_dead_letters WHERE {new}"
            " ORDER BY event_id"
        )
        return State(
            [(*attempt[:-1], _without_numbers(attempt[-1])) for attempt in attempts],
            await self._rows(
                f"SELECT event_id - {base}, subscription_id, status FROM webhook_delivery_sagas WHERE {new}"
                " ORDER BY event_id, subscription_id"
            ),
            await self._rows(
                f"SELECT {key} - {base}, biz_type, status FROM sys_pending_tasks WHERE {key} > {base} ORDER BY {key}"
            ),
            [(*letter[:-1], _without_numbers(letter[-1])) for letter in letters],
            (position, last, *(now - then for now, then in zip(await self._counts(), self._before, strict=True))),
            await self._rows("SELECT worker_name, lo, hi FROM route_holes"),
        )

    async def _set_up(self) -> None:
        await self._owner.run("INSERT INTO gates (name, is_open) VALUES ('routing', true), ('router:default', true)")
        await self._owner.run(
            "INSERT INTO routes (event_type, target, task_biz_type) VALUES ('order.*', 'webhook', ''),"
            " ('again.*', 'webhook', ''), ('again.*', 'task', 'report'), ('job.*', 'task', 'report')"
        )
        await self._owner.run(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified) VALUES"
            " ('*', 'https://one.example/', true, true), ('*', 'https://two.example/', true, true)"
        )
        await self._owner.run(
            f"ALTER TABLE webhook_delivery_sagas ADD CONSTRAINT saga_not_poisoned CHECK (correlation_id <> '{POISON}')"
        )
        await self.finish()

    async def _leave_holes(self) -> None:
        """A narrow one of two ids and a wide one; there are events behind both, and events to come in both."""
        await self._narrow.run("BEGIN")
        await self._insert(self._narrow, "order.paid", "job.done")
        await self._insert(self._other, "order.paid")
        await self._wide.run("BEGIN")
        await self._burn(BURNT)
        await self._insert(self._wide, "order.paid", "job.done")
        await self._burn(BURNT)
        await self._insert(self._other, "order.paid")

    async def _go_back(self) -> None:
        """To behind the holes. What was decided there was: as now, otherwise than now, or not at all."""
        await self._owner.run("UPDATE routes SET enabled = true WHERE event_type = 'again.*'")
        resolved = f"event_id IN (SELECT id FROM events WHERE id > {self._base} AND event_type = 'order.held')"
        await self._owner.run(f"UPDATE route_dead_letters SET resolved_at = created_at WHERE {resolved}")
        ((first,),) = await self._owner.run(
            f"SELECT MIN(id) FROM events WHERE id > {self._base} AND event_type = 'again.paid'"
        )
        engine = await self._database.open("route_admin")
        await admin.rewind(engine, "default", first - 3, "to be looked at again", "test")
        await engine.close()

    async def _insert(self, producer: Session, *event_types: str, correlation_id: str = "calm") -> None:
        values = ", ".join(f"('{event_type}', '{correlation_id}', '{{}}')" for event_type in event_types)
        await producer.run(f"INSERT INTO events (event_type, correlation_id, payload) VALUES {values}")

    async def _burn(self, count: int) -> None:
        await self._other.run("BEGIN")
        await self._insert(self._other, *["order.paid"] * count)
        await self._other.run("ROLLBACK")

    async def _counts(self) -> tuple[int, ...]:
        (counts,) = await self._rows(f"SELECT {', '.join(COUNTS)} FROM route_worker_cursors")
        return counts

    async def _rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._owner.run(text)]


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+", "#", text)
