"""Fills an installation with work, by a few statements of the schema's owner: however much, it takes no process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bench.payload import KEY, PAYLOAD, SECRET, TASK_TYPE
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.sessions import Session, connect
from tidings.flow import OWNER
from tidings.vault import Vault, seal_secret

SAGAS, JOBS, TASKS = "webhook_delivery_sagas", "webhook_delivery_jobs", "sys_pending_tasks"
TABLES = ("events", "route_attempts", SAGAS, JOBS, TASKS, "subscriptions", "delivery_lanes")
LONG_AGO = "2020-01-01"
AT_ONCE = 100_000
_MOST_LISTED = 1_000


class Backlog:
    """What is added comes after what is there; `generation` keeps sagas of the same event apart."""

    def __init__(self, database: Database, owner: Session) -> None:
        self._owner, self._words = owner, Words(database)
        self._generation = 0
        self._keys = 0

    async def run(self, text: str) -> list[tuple[Any, ...]]:
        return await self._owner.run(text)

    async def subscribe(self, urls: Sequence[str], types: Sequence[str] = ()) -> None:
        """One subscription for each URL, with a secret; to everything, or each to the type in the same place."""
        vault, rows = Vault([KEY]), []
        for number, url in enumerate(urls, 1):
            sealed = seal_secret(vault, number, SECRET, created_at=0, overlap=0)
            wanted = types[number - 1] if types else "*"
            rows.append(f"('{wanted}', '{url}', true, true, {self._words.binary(sealed)})")
        for first in range(0, len(rows), _MOST_LISTED):
            await self.run(
                "INSERT INTO subscriptions (event_type, callback_url, active, verified, secrets)"
                f" VALUES {', '.join(rows[first : first + _MOST_LISTED])}"
            )
        await self.run("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")

    async def open_gates(self) -> None:
        for gate in ("routing", "router:default"):
            await self.run(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")

    async def add_events(self, count: int, kinds: int = 1) -> None:
        """Of so many types, in turn: `kind-0` and so on."""
        if count <= _MOST_LISTED:
            # As a list: MariaDB draws more numbers than it needs for a SELECT, and what is left are holes for a router.
            rows = ", ".join(f"('kind-{number % kinds}', '{PAYLOAD}')" for number in range(count))
            await self.run(f"INSERT INTO events (event_type, payload) VALUES {rows}")
            return
        payload = self._words.json(f"'{PAYLOAD}'")
        for some in _parts(count):
            await self.run(
                "INSERT INTO events (event_type, payload)"
                f" SELECT CONCAT('kind-', MOD(seq, {kinds})), {payload} FROM {self._words.numbers(some)}"
            )

    async def add_sagas(self, count: int, lanes: int, status: str = "Pending") -> None:
        """Of the youngest events, due long ago, no two of an event at the same moment."""
        for some in _parts(count):
            self._generation += 1
            await self.run(
                f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id, generation, status, next_attempt_at)"
                f" SELECT e.id, 1 + MOD(e.id, {lanes}), 'c', {self._generation}, '{status}', {self._due('e.id')}"
                f" FROM (SELECT id FROM events ORDER BY id DESC LIMIT {some}) e ORDER BY e.id"
            )

    async def add_jobs(self, count: int, lanes: int) -> None:
        """Sagas under way whose jobs wait for a worker."""
        ((last,),) = await self.run(f"SELECT COALESCE(MAX(id), 0) FROM {SAGAS}")
        await self.add_sagas(count, lanes, "InProgress")
        await self.run(
            f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no, lease_until)"
            " SELECT id, subscription_id, next_attempt_at, 1, next_attempt_at"
            f" FROM {SAGAS} WHERE id > {last} ORDER BY id"
        )

    async def add_past(self, count: int, lanes: int) -> None:
        """Deliveries that have ended, with a job each. The jobs are of other sagas: none is made for an ended one."""
        for some in _parts(count):
            await self.add_sagas(some, lanes, "Completed")
            await self.run(
                f"INSERT INTO {JOBS}"
                " (saga_id, subscription_id, attempt_at, attempt_no, status, lease_until, applied_at)"
                f" SELECT -({self._generation} * {AT_ONCE} + seq), 1, '{LONG_AGO}', 1, 'Completed', '{LONG_AGO}',"
                f" '{LONG_AGO}' FROM {self._words.numbers(some)}"
            )

    async def add_tasks(self, count: int, priorities: int = 1) -> None:
        for some in _parts(count):
            self._keys += 1
            await self.run(
                f"INSERT INTO {TASKS} (biz_type, biz_key, priority, payload, next_run_time)"
                f" SELECT '{TASK_TYPE}', CONCAT('{self._keys}-', seq), MOD(seq, {priorities}), '{{}}',"
                f" {self._due('seq')} FROM {self._words.numbers(some)}"
            )

    async def tidy(self) -> None:
        """As a server does by itself after a while."""
        for name in TABLES:
            await self.run(self._words.tidy(name))

    async def be_counted(self) -> None:
        """What this session has done so far is in the server's statistics from now on, and not later."""
        await self.run(self._words.be_counted)

    async def delivered(self) -> int:
        """By the totals, which are written with the results: counting sagas would cost more than some deliveries."""
        ((count,),) = await self.run("SELECT SUM(delivered) FROM delivery_totals WHERE subscription_id = 0")
        return int(count or 0)

    async def count(self, table: str, where: str) -> int:
        ((count,),) = await self.run(f"SELECT COUNT(*) FROM {table} WHERE {where}")
        return int(count)

    async def look_back(self) -> None:
        """This session holds a transaction open from now on: what it could still see is kept."""
        for text in self._words.look_back:
            await self.run(text)
        await self.run(f"SELECT COUNT(*) FROM {SAGAS} WHERE id < 0")

    def _due(self, number: str) -> str:
        return self._words.later(self._words.moment(LONG_AGO), number, "microsecond")


@asynccontextmanager
async def filling(database: Database) -> AsyncIterator[Backlog]:
    session = await connect(database.url(OWNER))
    try:
        yield Backlog(database, session)
        # Whoever looked back must have let go before the tables are emptied.
        await session.run("ROLLBACK")
    finally:
        await session.close()


def _parts(count: int) -> list[int]:
    whole, rest = divmod(count, AT_ONCE)
    return [AT_ONCE] * whole + [rest] * bool(rest)
