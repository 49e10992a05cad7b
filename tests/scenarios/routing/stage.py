"""An installation that routes everything to two subscribers, and what must be true of it after any history."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.scenarios.routing.words import Words
from tests.support.database import Database
from tests.support.sessions import Session, connect
from tidings.flow import OWNER
from tidings.model.route import DEFAULT_ROUTER, router_gate

SUBSCRIBERS = 2
# `own` is where producers keep external ids that nobody else uses.
DOMAINS = ("default", "billing", "own")
PRODUCER = "event_ingest_writer"
ROUTER = "event_router"


async def set_up(database: Database, *routers: str) -> None:
    """Open gates, a route for everything and subscribers for every domain."""
    names = ("routing", *(router_gate(name) for name in routers or (DEFAULT_ROUTER,)))
    gates = ", ".join(f"('{name}', true)" for name in names)
    await database.sql(f"INSERT INTO gates (name, is_open) VALUES {gates}")
    await database.sql("INSERT INTO routes (event_domain, event_type, target) VALUES ('*', '*', 'webhook')")
    url = "https://receiver.example/"
    wanting = [(domain, n) for domain in DOMAINS for n in range(SUBSCRIBERS)]
    rows = ", ".join(f"('{domain}', '*', '{url}{n}', true, true)" for domain, n in wanting)
    await database.sql(
        f"INSERT INTO subscriptions (event_domain, event_type, callback_url, active, verified) VALUES {rows}"
    )


@dataclass(frozen=True)
class Cursor:
    position: int
    holes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Verdict:
    """What is wrong with a history; all empty when every committed event was decided once and nothing else was."""

    skipped: list[int] = field(default_factory=list)
    ghosts: list[int] = field(default_factory=list)
    not_decided_once: list[int] = field(default_factory=list)
    wrong_sagas: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.skipped or self.ghosts or self.not_decided_once or self.wrong_sagas)


class Ledger:
    """Looks at the tables as their owner, over one session that stays open."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @classmethod
    async def of(cls, database: Database) -> "Ledger":
        return cls(await connect(database.url(OWNER)))

    async def committed(self, above: int = 0) -> set[int]:
        return await self._ids(f"SELECT id FROM events WHERE id > {above}")

    async def tags(self) -> dict[int, str]:
        return dict(await self._all("SELECT id, correlation_id FROM events"))

    async def routed(self, above: int = 0) -> set[int]:
        return await self._ids(f"SELECT event_id FROM route_attempts WHERE event_id > {above}")

    async def routed_at(self, words: Words) -> dict[int, float]:
        """When each event was decided, in seconds since the epoch."""
        rows = await self._all(f"SELECT event_id, {words.epoch('created_at')} FROM route_attempts")
        return {event_id: float(moment) for event_id, moment in rows}

    async def last_id(self) -> int:
        ((last,),) = await self._all("SELECT COALESCE(MAX(id), 0) FROM events")
        return int(last)

    async def count(self) -> int:
        ((count,),) = await self._all("SELECT COUNT(*) FROM events")
        return int(count)

    async def cursor(self, worker: str = DEFAULT_ROUTER) -> Cursor:
        holes = await self._all(f"SELECT lo, hi FROM route_holes WHERE worker_name = '{worker}' ORDER BY lo")
        places = await self._all(f"SELECT position FROM route_worker_cursors WHERE worker_name = '{worker}'")
        return Cursor(places[0][0] if places else 0, tuple((lo, hi) for lo, hi in holes))

    async def has_run(self, worker: str) -> bool:
        return bool(await self._all(f"SELECT 1 FROM route_worker_cursors WHERE worker_name = '{worker}' AND runs > 0"))

    async def is_drained(self, *workers: str) -> bool:
        last = await self.last_id()
        return all([await self.cursor(worker) == Cursor(last, ()) for worker in workers or (DEFAULT_ROUTER,)])

    async def verdict(self, above: int = 0) -> Verdict:
        """One attempt for each committed event, whoever made it, one saga for each subscriber, nothing for others."""
        new = f"event_id > {above}"
        no_event = "NOT EXISTS (SELECT 1 FROM events e WHERE e.id = event_id)"
        return Verdict(
            skipped=sorted(
                await self._ids(
                    f"SELECT e.id FROM events e WHERE e.id > {above}"
                    " AND NOT EXISTS (SELECT 1 FROM route_attempts a WHERE a.event_id = e.id)"
                )
            ),
            ghosts=sorted(
                await self._ids(f"SELECT event_id FROM route_attempts WHERE {new} AND {no_event}")
                | await self._ids(f"SELECT event_id FROM webhook_delivery_sagas WHERE {new} AND {no_event}")
            ),
            not_decided_once=sorted(
                await self._ids(
                    f"SELECT event_id FROM route_attempts WHERE {new} GROUP BY event_id HAVING COUNT(*) <> 1"
                    f" OR MIN(attempt_no) <> 1 OR MIN(status) <> 'sent' OR MIN(matched) <> {SUBSCRIBERS}"
                )
            ),
            wrong_sagas=sorted(
                await self._ids(
                    "SELECT e.id FROM events e LEFT JOIN webhook_delivery_sagas s ON s.event_id = e.id"
                    f" WHERE e.id > {above} GROUP BY e.id"
                    f" HAVING COUNT(s.id) <> {SUBSCRIBERS} OR COUNT(DISTINCT s.subscription_id) <> {SUBSCRIBERS}"
                )
            ),
        )

    async def close(self) -> None:
        await self.session.close()

    async def _ids(self, text: str) -> set[int]:
        return {row[0] for row in await self._all(text)}

    async def _all(self, text: str) -> Sequence[tuple[Any, ...]]:
        return await self.session.run(text)


@asynccontextmanager
async def looking_at(database: Database) -> AsyncIterator[Ledger]:
    """For a look at an installation whose server may be killed: on a session of its own."""
    ledger = await Ledger.of(database)
    try:
        yield ledger
    finally:
        await ledger.close()


def few(ids: Iterable[int]) -> str:
    """The first ids of a list that may be long."""
    found = sorted(ids)
    return f"{len(found)} ({', '.join(map(str, found[:10]))}{', …' if len(found) > 10 else ''})"
