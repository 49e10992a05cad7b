"""What the database says: the tables as they are in the end, and the history that led there. Plain SQL, own drivers."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import psycopg
import pymysql
import pymysql.cursors

from tests.chaos.checker import history

Row = dict[str, Any]
PART = 100_000


class Change(NamedTuple):
    """One line of the history; moments are seconds since 1970."""

    id: int
    what: str
    op: str
    row_id: int
    parent_id: int | None
    peer_id: int | None
    old_status: str | None
    new_status: str | None
    old_token: int | None
    new_token: int | None
    number: int | None
    place: int | None
    worker: str | None
    note: str | None
    answer: int | None
    until_at: float | None
    at: float


@dataclass
class Story:
    """All changes of one row, in their order."""

    changes: list[Change] = field(default_factory=list)

    @property
    def first(self) -> Change:
        return self.changes[0]

    @property
    def last(self) -> Change:
        """As it was in the end, or before it was removed."""
        kept = [change for change in self.changes if change.op != "D"]
        return kept[-1] if kept else self.changes[-1]

    @property
    def is_removed(self) -> bool:
        return self.changes[-1].op == "D"

    @property
    def moves(self) -> list[Change]:
        return [change for change in self.changes if change.op == "U" and change.old_status != change.new_status]


@dataclass
class Tables:
    events: list[Row]
    sagas: list[Row]
    jobs: list[Row]
    dead_letters: list[Row]
    tasks: list[Row]
    archived: list[Row]
    audit: list[Row]
    routed: list[Row]
    stories: dict[str, dict[int, Story]]
    checks: list[Row] = field(default_factory=list)
    verified: set[int] = field(default_factory=set)

    def of(self, what: str) -> dict[int, Story]:
        return self.stories.get(what, {})

    def jobs_of(self) -> dict[int, list[Story]]:
        """The jobs of each saga, in the order of their attempts."""
        found: dict[int, list[Story]] = defaultdict(list)
        for story in self.of("job").values():
            assert story.first.parent_id is not None
            found[story.first.parent_id].append(story)
        return {saga: sorted(jobs, key=lambda job: job.first.place or 0) for saga, jobs in found.items()}

    def calls(self) -> dict[str, Row]:
        """Checks by the keys of the tasks that make them."""
        return {f"{row['subscription_id']}:{row['challenge']}": row for row in self.checks}

    def task_ids(self) -> dict[str, int]:
        """By key; also of those that retention has removed."""
        removed = {story.last.note or "": id for id, story in self.of("archived").items()}
        return {**removed, **{row["biz_key"]: row["id"] for row in (*self.tasks, *self.archived)}}


class Witness:
    """`url` is that of a login that may read everything and make tables and triggers."""

    def __init__(self, url: str, schema: str) -> None:
        self._url, self._schema = url, schema
        self.is_postgresql = urlsplit(url).scheme == "postgresql"

    def watch(self) -> None:
        self._run(history.watch(self.is_postgresql))

    def stop_watching(self) -> None:
        self._run(history.unwatch(self.is_postgresql))

    def unfinished(self) -> str:
        """What is still under way, in a few words; empty when all has come to its end."""
        return ", ".join(f"{count} {what}" for what, count in self.open_things().items() if count)

    def open_things(self) -> dict[str, int]:
        questions = {
            # In this order: what was routed before the first look has its sagas at the second.
            "events not routed": "SELECT COUNT(*) AS n FROM events e"
            " WHERE NOT EXISTS (SELECT 1 FROM route_attempts a WHERE a.event_id = e.id)",
            "sagas open": "SELECT COUNT(*) AS n FROM webhook_delivery_sagas"
            " WHERE status NOT IN ('Completed', 'DeadLettered')",
            "results not taken in": "SELECT COUNT(*) AS n FROM webhook_delivery_jobs WHERE applied_at IS NULL",
            "tasks open": "SELECT COUNT(*) AS n FROM sys_pending_tasks WHERE status NOT IN (2, 4)",
        }
        return {what: self.rows(text)[0]["n"] for what, text in questions.items()}

    def read(self) -> Tables:
        payload = "CAST(payload AS text)" if self.is_postgresql else "payload"
        snapshot = "CAST(payload_snapshot AS text)" if self.is_postgresql else "payload_snapshot"
        return Tables(
            self.rows(f"SELECT id, event_type, correlation_id, {payload} AS payload FROM events"),
            self.rows("SELECT id, status FROM webhook_delivery_sagas"),
            self.rows("SELECT id, status, applied_at FROM webhook_delivery_jobs"),
            self.rows(f"SELECT id, event_id, {snapshot} AS payload FROM dead_letters"),
            self.rows("SELECT id, biz_key FROM sys_pending_tasks"),
            self.rows("SELECT id, biz_key FROM sys_pending_tasks_history"),
            self.rows("SELECT actor, action, subject FROM audit_log"),
            self.rows("SELECT event_id FROM route_attempts"),
            self._stories(),
            self.rows("SELECT id, subscription_id, kind, challenge, outcome FROM endpoint_checks"),
            {row["id"] for row in self.rows("SELECT id FROM subscriptions WHERE verified")},
        )

    def rows(self, text: str) -> list[Row]:
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(text)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def _stories(self) -> dict[str, dict[int, Story]]:
        seconds = (
            "CAST(extract(epoch FROM {0}) AS double precision)"
            if self.is_postgresql
            else "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {0}) / 1000000e0"
        )
        columns = [c.strip() for c in history.COLUMNS.split(",")]
        chosen = [f"{seconds.format(c)} AS {c}" if c in ("at", "until_at") else c for c in columns]
        found: dict[str, dict[int, Story]] = defaultdict(lambda: defaultdict(Story))
        text = f"SELECT id, {', '.join(chosen)} FROM chaos_history"
        for change in self._in_parts(text):
            found[change.what][change.row_id].changes.append(change)
        return {what: dict(stories) for what, stories in found.items()}

    def _in_parts(self, text: str) -> Iterator[Change]:
        """A night has millions of them: a part at a time, and one copy of each word."""
        last = 0
        while rows := self.rows(f"{text} WHERE id > {last} ORDER BY id LIMIT {PART}"):
            for row in rows:
                once: dict[str, Any] = {name: intern(it) if type(it) is str else it for name, it in row.items()}
                yield Change(**once)
            last = rows[-1]["id"]

    def _run(self, texts: Iterable[str]) -> None:
        connection = self._connect()
        try:
            with connection.cursor() as cursor:
                for text in texts:
                    cursor.execute(text)
        finally:
            connection.close()

    def _connect(self) -> Any:
        if self.is_postgresql:
            return psycopg.connect(
                self._url,
                autocommit=True,
                row_factory=psycopg.rows.dict_row,
                options=f"-c search_path={self._schema}",
                connect_timeout=10,
            )
        parts = urlsplit(self._url)
        return pymysql.connect(
            host=parts.hostname,
            port=parts.port or 3306,
            user=unquote(parts.username or ""),
            password=unquote(parts.password or ""),
            database=self._schema,
            charset="utf8mb4",
            autocommit=True,
            cursorclass=pymysql.cursors.DictCursor,
            connect_timeout=10,
            ssl_disabled=True,
        )


def pid_of(worker: str | None) -> int | None:
    """Worker ids are `process:host:pid:chance`."""
    parts: Sequence[str] = (worker or "").split(":")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else None
