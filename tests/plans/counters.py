"""How many rows and pages a server has read, by its own count."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.support.database import Database
from tests.support.sessions import Session, connect
from tests.support.waiting import eventually
from tidings.db.engine import Engine

MEASURED = (
    "event_router",
    "saga_orchestrator",
    "job_worker",
    "lease_cleaner",
    "dead_letter_operator",
    "task_producer",
    "task_worker",
    "task_rescuer",
    "task_archiver",
    "retention",
    "observer",
)
_POSTGRESQL = """
    SELECT r.relname, COALESCE(r.seq_tup_read, 0) + COALESCE(x.tuples, 0),
           s.heap_blks_read + s.heap_blks_hit + COALESCE(x.blocks, 0)
      FROM pg_stat_user_tables r
      JOIN pg_statio_user_tables s USING (relid)
      LEFT JOIN (SELECT i.relid, SUM(i.idx_tup_read) AS tuples, SUM(b.idx_blks_read + b.idx_blks_hit) AS blocks
                   FROM pg_stat_user_indexes i JOIN pg_statio_user_indexes b USING (indexrelid)
                  GROUP BY i.relid) x USING (relid)
     WHERE r.schemaname = '{schema}'
"""
_MARIADB = "SELECT SUM(variable_value) FROM information_schema.global_status WHERE variable_name LIKE 'Handler_read%'"
# Pages are counted for the server's own upkeep too; of single statements they stand in the log of slow ones.
_LOG_EVERYTHING = {
    "log_output": "'FILE'",
    "log_slow_verbosity": "'engine'",
    "long_query_time": "0",
    "slow_query_log": "1",
}
_LOGGED = re.compile(
    rf"# User@Host: \w*(?:{'|'.join(MEASURED)})\[.*?# Pages_accessed: (\d+).*?/\* ([a-z_.]+) \*/".encode(), re.DOTALL
)


@dataclass(frozen=True)
class Reads:
    """`parts` says of which tables, or by which statements: rows and pages."""

    rows: int
    pages: int
    parts: str = ""

    def is_beyond(self, bound: "Reads") -> bool:
        return self.rows > bound.rows or self.pages > bound.pages


def beyond(found: Mapping[str, Reads], bounds: Mapping[str, Reads], when: str) -> list[str]:
    """What was too much, in words."""
    return [
        f"{when}, {what}: {reads}, bound {bounds[what]}"
        for what, reads in found.items()
        if reads.is_beyond(bounds[what])
    ]


class Counters(Protocol):
    """Asks the server. What one session has read is counted for sure when that session has ended."""

    async def settle(self, role: str) -> None:
        """Waits until all that this role has read by now is counted; it has no session any more."""

    async def start(self) -> None: ...

    async def read(self, role: str) -> Reads: ...

    async def close(self) -> None: ...


class PostgresCounters:
    def __init__(self, session: Session, schema: str) -> None:
        self._session = session
        self._text = _POSTGRESQL.format(schema=schema)
        self._before: dict[str, tuple[int, int]] = {}

    async def start(self) -> None:
        self._before = await self._now()

    async def settle(self, role: str) -> None:
        await eventually(lambda: self._is_gone(role), what="the role's sessions to end")

    async def read(self, role: str) -> Reads:
        await self.settle(role)
        now = await self._now()
        read = {
            table: tuple(int(after - before) for after, before in zip(counts, self._before[table], strict=True))
            for table, counts in now.items()
        }
        shown = ", ".join(f"{table} {rows}/{pages}" for table, (rows, pages) in sorted(read.items()) if rows or pages)
        return Reads(sum(rows for rows, _ in read.values()), sum(pages for _, pages in read.values()), shown)

    async def close(self) -> None:
        await self._session.close()

    async def _now(self) -> dict[str, tuple[int, int]]:
        return {table: (rows, pages) for table, rows, pages in await self._session.run(self._text)}

    async def _is_gone(self, role: str) -> bool:
        left = f"SELECT 1 FROM pg_stat_activity WHERE application_name = 'tidings {role}'"
        return not await self._session.run(left)


class MariaDBCounters:
    """Asking costs rows itself, always as many: they are taken off."""

    def __init__(self, session: Session, data: Path) -> None:
        self._session = session
        self._data = data
        self._before = self._of_asking = self._logged = 0

    async def prepare(self) -> None:
        """For sessions that are opened from now on."""
        self._kept = {name: (await self._session.run(f"SELECT @@GLOBAL.{name}"))[0][0] for name in _LOG_EVERYTHING}
        ((name,),) = await self._session.run("SELECT @@GLOBAL.slow_query_log_file")
        self._log = self._data / name
        await self._set(_LOG_EVERYTHING)

    async def settle(self, role: str) -> None:
        """It counts at once."""

    async def start(self) -> None:
        first, second = await self._now(), await self._now()
        self._of_asking = second - first
        self._logged = self._log.stat().st_size
        self._before = await self._now()

    async def read(self, role: str) -> Reads:
        rows = await self._now() - self._before - self._of_asking
        pages: Counter[str] = Counter()
        for count, statement in _LOGGED.findall(self._log.read_bytes()[self._logged :]):
            pages[statement.decode()] += int(count)
        return Reads(rows, pages.total(), ", ".join(f"{name} -/{count}" for name, count in pages.items() if count))

    async def close(self) -> None:
        await self._set({name: f"'{value}'" if isinstance(value, str) else value for name, value in self._kept.items()})
        await self._session.close()

    async def _set(self, settings: Mapping[str, object]) -> None:
        for name, value in settings.items():
            await self._session.run(f"SET GLOBAL {name} = {value}")

    async def _now(self) -> int:
        return int((await self._session.run(_MARIADB))[0][0])


async def reads_of(counters: Counters, engine: Engine, work: Callable[[Engine], Awaitable[None]]) -> Reads:
    """Of this work, which is the engine's last: what a session has read is counted for sure when it has ended."""
    await counters.start()
    await work(engine)
    await engine.close()
    return await counters.read(engine.owner)


async def counters_of(database: Database) -> Counters:
    await database.keep_no_sessions()
    session = await connect(database.admin_url)
    if database.family == "postgresql":
        return PostgresCounters(session, database.names.schema)
    counters = MariaDBCounters(session, database.server.data)
    await counters.prepare()
    return counters
