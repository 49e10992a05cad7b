"""The database defends itself, whoever connects: what no session can do, tried as the owner of the tables.

Most tests act in one transaction that is undone at their end; a statement that must be refused stands in a
savepoint, and everything that is guarded is looked at before and after it.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.database import Database, as_it_stands
from tidings.db.engine import open_engine
from tidings.db.session import Row
from tidings.db.transaction import Transaction
from tidings.errors import StatementFailed
from tidings.flow import OWNER
from tidings.model.job import JobStatus
from tidings.model.saga import SAGA_MOVES, SagaStatus
from tidings.model.task import TaskStatus
from tidings.tables import Column, columns_of, tables_of

pytestmark = pytest.mark.slow

SAGAS, JOBS, TASKS = "webhook_delivery_sagas", "webhook_delivery_jobs", "sys_pending_tasks"
ENDED = ("Completed", "DeadLettered")
OPEN = ("Pending", "InProgress", "PendingRetry")
NO_SAGA = 1_000_000  # an id that no saga of these tests has
MOMENT, LATER = "2026-01-01 00:00:00", "2026-02-03 04:05:06"

PLAINEST: Mapping[str, Mapping[str, Any]] = {
    "events": {"event_type": "a", "payload": "{}"},
    "subscriptions": {"event_type": "a", "callback_url": "https://example.com"},
    SAGAS: {"event_id": 1, "subscription_id": 1, "correlation_id": "c"},
    JOBS: {"saga_id": NO_SAGA, "subscription_id": 1, "attempt_at": MOMENT, "attempt_no": 1},
    "dead_letters": {"saga_id": 1, "event_id": 1, "subscription_id": 1, "payload_snapshot": "{}"},
    "routes": {"event_type": "a", "target": "webhook"},
    "route_worker_cursors": {"worker_name": "w"},
    "route_holes": {"worker_name": "w", "lo": 1, "hi": 1},
    "route_attempts": {"event_id": 1, "worker_name": "w", "status": "sent", "idempotency_key": "k"},
    "route_dead_letters": {
        "event_id": 1,
        "worker_name": "w",
        "idempotency_key": "k",
        "event_snapshot": "{}",
        "error": "e",
    },
    TASKS: {"biz_type": "t", "biz_key": "k"},
    "audit_log": {"actor": "a", "action": "b", "subject": "c"},
    "config_version": {},
    "installation": {},
}
FULL_JOB = {
    "worker_id": "w",
    "response_status": 200,
    "error_code": "e",
    "retry_after": 1,
    "response_excerpt": "x",
    "duration_ms": 1,
    "finished_at": MOMENT,
}

NEVER_CHANGED = {
    "events": "events never change",
    "dead_letters": "dead letters never change",
    "route_attempts": "routing decisions never change",
    "audit_log": "the audit log never changes",
}
NEVER_REMOVED = {
    "events": "events are never deleted",
    SAGAS: "sagas are never deleted",
    JOBS: "jobs are never deleted",
    "dead_letters": "dead letters are never deleted",
    "route_attempts": "routing decisions are never deleted",
    "route_dead_letters": "routing dead letters are never deleted",
    "audit_log": "the audit log is never deleted",
}
SAGA_ENDED = "a saga that has ended never changes"
JOB_FINISHED = "a finished job changes only applied_at, and that once"
NO_JOB = "no job can be created for a saga that has ended"
TASK_ENDED = "a task that has ended never changes"


def literal(value: Any) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{value}'"


def insertion(table: str, **values: Any) -> str:
    row = {**PLAINEST[table], **values}
    key = tables_of("postgresql")[table].key[0]
    return (
        f"INSERT INTO {table} ({', '.join(row) or 'id'}) VALUES ({', '.join(map(literal, row.values())) or 'DEFAULT'})"
        f" RETURNING {key} AS id"
    )


def columns(table: str) -> tuple[Column, ...]:
    return columns_of(tables_of("postgresql")[table], "postgresql")


def name(parameter: Any) -> str:
    return parameter.name if isinstance(parameter, Column) else str(parameter)


def another(column: Column, family: str) -> str:
    """A legal value for this column that no row of these tests has."""
    if column.name == "id":
        return "DEFAULT" if family == "postgresql" else "id + 1000"
    kinds = {"instant": LATER, "json": '{"other": 1}', "one": "dry_run", "text": "other", "long": "other", "bytes": "b"}
    return literal(kinds.get(column.type.split()[0], 77))


class Acting:
    """One role in one open transaction."""

    def __init__(self, transaction: Transaction, family: str) -> None:
        self._transaction = transaction
        self.family = family

    async def sql(self, text: str) -> Sequence[Row]:
        return await self._transaction.rows(as_it_stands(text))

    async def insert(self, table: str, **values: Any) -> Any:
        (row,) = await self.sql(insertion(table, **values))
        return row["id"]

    async def stored(self) -> dict[str, list[dict[str, Any]]]:
        """Everything that is guarded."""
        tables = [*NEVER_REMOVED, TASKS]
        return {table: [dict(row) for row in await self.sql(f"SELECT * FROM {table} ORDER BY id")] for table in tables}

    async def is_refused(self, text: str, words: str) -> None:
        """The statement fails with these words, and has changed nothing."""
        before = await self.stored()
        with pytest.raises(StatementFailed, match=words):
            async with self._transaction.savepoint():
                await self.sql(text)
        assert await self.stored() == before


@asynccontextmanager
async def acting(database: Database, role: str) -> AsyncIterator[Acting]:
    engine = await database.open(role)
    async with engine.bare_session() as session:
        await session.command(engine.dialect.begin)
        try:
            yield Acting(Transaction(session), database.family)
        finally:
            await session.command("ROLLBACK")


@pytest.fixture
async def owner(migrated: Database) -> AsyncIterator[Acting]:
    """The owner of all tables, in a transaction that is undone after the test."""
    async with acting(migrated, OWNER) as session:
        yield session
    await migrated.close()


# What never changes


@pytest.mark.parametrize(("table", "column"), [(table, c) for table in NEVER_CHANGED for c in columns(table)], ids=name)
async def test_no_column_of_an_append_only_table_changes(owner: Acting, table: str, column: Column) -> None:
    """Phase 2: "INSERT into events with immutable JSON payload"; r02 §3.1: 不可變更."""
    await owner.insert(table)
    await owner.is_refused(f"UPDATE {table} SET {column.name} = {another(column, owner.family)}", NEVER_CHANGED[table])


@pytest.mark.parametrize("table", NEVER_CHANGED)
async def test_an_update_of_an_append_only_table_is_refused_also_when_it_changes_nothing(
    owner: Acting, table: str
) -> None:
    await owner.insert(table)
    column = columns(table)[1].name
    await owner.is_refused(f"UPDATE {table} SET {column} = {column}", NEVER_CHANGED[table])


OTHER_WAYS_TO_CHANGE = {
    "postgresql": {
        "an upsert": "INSERT INTO events (event_type, payload, external_id) VALUES ('b', '{}', 'x')"
        " ON CONFLICT (event_domain, external_id) WHERE external_id IS NOT NULL DO UPDATE SET event_type = 'b'",
        "a merge": "MERGE INTO events USING (SELECT 1) s ON true WHEN MATCHED THEN UPDATE SET event_type = 'b'",
        "a common table expression": "WITH w AS (UPDATE events SET event_type = 'b' RETURNING 1) SELECT * FROM w",
    },
    "mysql": {
        "an upsert": "INSERT INTO events (event_type, payload, external_id) VALUES ('b', '{}', 'x')"
        " ON DUPLICATE KEY UPDATE event_type = 'b'",
        "an update that ignores errors": "UPDATE IGNORE events SET event_type = 'b'",
        "an update of several tables": "UPDATE events e JOIN events f ON f.id = e.id SET e.event_type = 'b'",
    },
}


@pytest.mark.parametrize("way", range(3))
async def test_no_other_statement_changes_an_event_either(owner: Acting, way: int) -> None:
    await owner.insert("events", external_id="x")
    text = [*OTHER_WAYS_TO_CHANGE[owner.family].values()][way]
    await owner.is_refused(text, NEVER_CHANGED["events"])


# What never goes

FINISHED_ROWS: Mapping[str, Mapping[str, Any]] = {
    "events": {},
    SAGAS: {"status": "Completed"},
    JOBS: {"status": "Completed", "applied_at": MOMENT},
    "dead_letters": {},
    "route_attempts": {},
    "route_dead_letters": {"resolved_at": MOMENT, "resolution": "replayed"},
    "audit_log": {},
}


@pytest.mark.parametrize("table", NEVER_REMOVED)
async def test_the_owner_deletes_nothing_not_even_what_is_finished(owner: Acting, table: str) -> None:
    """Seed 004: "resolved via resolved_at+resolution, never DELETEd"."""
    await owner.insert(table, **FINISHED_ROWS[table])
    await owner.is_refused(f"DELETE FROM {table}", NEVER_REMOVED[table])


@pytest.mark.parametrize(
    ("table", "status"), [(SAGAS, status) for status in SagaStatus] + [(JOBS, status) for status in JobStatus]
)
async def test_a_saga_or_a_job_is_not_deleted_whatever_its_status(owner: Acting, table: str, status: str) -> None:
    await owner.insert(table, status=status)
    await owner.is_refused(f"DELETE FROM {table}", NEVER_REMOVED[table])


async def test_no_guarded_table_is_truncated_not_even_an_empty_one(engine: Database) -> None:
    for table in NEVER_REMOVED:
        with pytest.raises(StatementFailed, match=truncation_words(engine, table)):
            await engine.sql(f"TRUNCATE TABLE {table}")
        await engine.sql(insertion(table, **FINISHED_ROWS[table]))
        with pytest.raises(StatementFailed, match=truncation_words(engine, table)):
            await engine.sql(f"TRUNCATE TABLE {table}")
        assert await engine.value(f"SELECT COUNT(*) FROM {table}") == 1


def truncation_words(engine: Database, table: str) -> str:
    return NEVER_REMOVED[table] if engine.family == "postgresql" else "truncate_guard"


@pytest.mark.one_engine("postgresql", reason="MariaDB knows no other form")
@pytest.mark.parametrize(
    "truncation",
    ["TRUNCATE gates, {}", "TRUNCATE {} CASCADE", "TRUNCATE {} RESTART IDENTITY", "TRUNCATE ONLY {}"],
)
async def test_no_form_of_truncate_passes(owner: Acting, truncation: str) -> None:
    for table in NEVER_REMOVED:
        await owner.insert(table)
        await owner.is_refused(truncation.format(table), NEVER_REMOVED[table])


@pytest.mark.one_engine("postgresql", reason="MariaDB truncates one table at a time")
async def test_all_tables_in_one_truncate_are_refused(owner: Acting) -> None:
    tables = ", ".join(tables_of("postgresql"))
    await owner.insert("events")
    await owner.is_refused(f"TRUNCATE {tables} CASCADE", "never deleted")


@pytest.mark.one_engine(
    "mariadb", reason="there DROP and TRUNCATE are one right. On PostgreSQL a DROP by the owner is migration"
)
@pytest.mark.parametrize("removal", ["DROP TABLE {}", "CREATE OR REPLACE TABLE {} (id int)"])
async def test_what_refuses_truncate_refuses_drop_too(engine: Database, removal: str) -> None:
    for table in NEVER_REMOVED:
        await engine.sql(insertion(table))
        with pytest.raises(StatementFailed, match="foreign key constraint"):
            await engine.sql(removal.format(table))
        assert await engine.value(f"SELECT COUNT(*) FROM {table}") == 1


@pytest.mark.one_engine("mariadb", reason="PostgreSQL has one way to delete rows")
@pytest.mark.parametrize(
    "text",
    [
        "REPLACE INTO events (event_type, payload, external_id) VALUES ('b', '{}', 'x')",
        "DELETE IGNORE FROM events",
        "DELETE e FROM events e JOIN events f ON f.id = e.id",
    ],
)
async def test_no_other_statement_deletes_an_event_either(owner: Acting, text: str) -> None:
    await owner.insert("events", external_id="x")
    await owner.is_refused(text, NEVER_REMOVED["events"])


# Sagas


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize("column", columns(SAGAS), ids=name)
async def test_no_column_of_an_ended_saga_changes(owner: Acting, status: str, column: Column) -> None:
    """r01 §5.4: 禁止對該 saga 進行任何後續更新; `updated_at` stays at the moment of its end."""
    await owner.insert(SAGAS, status=status)
    value = "'Pending'" if column.name == "status" else another(column, owner.family)
    await owner.is_refused(f"UPDATE {SAGAS} SET {column.name} = {value}", SAGA_ENDED)


@pytest.mark.parametrize("status", ENDED)
async def test_an_update_of_an_ended_saga_is_refused_also_when_it_changes_nothing(owner: Acting, status: str) -> None:
    """r01 §10.2: "Terminal states (Completed, DeadLettered) must be durable and never updated afterward"."""
    await owner.insert(SAGAS, status=status)
    await owner.is_refused(f"UPDATE {SAGAS} SET updated_at = updated_at", SAGA_ENDED)


async def test_one_ended_saga_among_many_open_ones_stops_the_whole_update(owner: Acting) -> None:
    for event_id, status in enumerate([*OPEN, "Completed"], 1):
        await owner.insert(SAGAS, event_id=event_id, status=status)
    await owner.is_refused(f"UPDATE {SAGAS} SET attempt_count = 1", SAGA_ENDED)


@pytest.mark.parametrize(("old", "new"), [(old, new) for old in SagaStatus for new in sorted(SAGA_MOVES[old])])
async def test_an_open_saga_makes_every_legal_move(owner: Acting, old: SagaStatus, new: SagaStatus) -> None:
    """r01 §3."""
    saga = await owner.insert(SAGAS, status=old)
    await owner.sql(f"UPDATE {SAGAS} SET status = '{new}', attempt_count = 1, updated_at = '{LATER}' WHERE id = {saga}")
    (row,) = await owner.sql(f"SELECT status FROM {SAGAS} WHERE id = {saga}")
    assert row["status"] == new


# Jobs


@pytest.mark.parametrize("column", [c for c in columns(JOBS) if c.name != "applied_at"], ids=name)
@pytest.mark.parametrize("also_applied", [False, True], ids=["alone", "together with applied_at"])
async def test_no_column_of_a_finished_job_but_applied_at_changes(
    owner: Acting, column: Column, also_applied: bool
) -> None:
    """Phase 5: "same job_id handled only once": what was reported stays as it was reported."""
    also = f", applied_at = '{LATER}'" if also_applied else ""
    empty = await owner.insert(JOBS, status="Completed")
    full = await owner.insert(JOBS, status="Failed", attempt_at=LATER, **FULL_JOB)
    for job, value in [(empty, another(column, owner.family)), (full, "NULL" if column.null else None)]:
        if column.name == "status":
            value = "'Pending'"
        elif column.name == "attempt_at":
            value = "'2026-03-03'"
        if value:
            await owner.is_refused(f"UPDATE {JOBS} SET {column.name} = {value}{also} WHERE id = {job}", JOB_FINISHED)


@pytest.mark.parametrize("change", ["worker_id = 'W'", "worker_id = 'w '", "error_code = ''", "status = 'Failed'"])
async def test_a_finished_job_does_not_change_by_a_letters_case_or_a_blank(owner: Acting, change: str) -> None:
    await owner.insert(JOBS, status="Completed", **FULL_JOB)
    await owner.is_refused(f"UPDATE {JOBS} SET {change}, applied_at = '{LATER}'", JOB_FINISHED)


@pytest.mark.parametrize("status", ["Completed", "Failed"])
async def test_a_finished_job_is_applied_once(owner: Acting, status: str) -> None:
    job = await owner.insert(JOBS, status=status, **FULL_JOB)
    await owner.sql(f"UPDATE {JOBS} SET applied_at = '{MOMENT}' WHERE id = {job}")
    (row,) = await owner.sql(f"SELECT applied_at FROM {JOBS} WHERE id = {job}")
    assert row["applied_at"] is not None


@pytest.mark.parametrize("value", [literal(LATER), "NULL", "applied_at"])
async def test_applied_at_is_neither_set_again_nor_taken_back(owner: Acting, value: str) -> None:
    await owner.insert(JOBS, status="Completed", applied_at=MOMENT)
    await owner.is_refused(f"UPDATE {JOBS} SET applied_at = {value}", JOB_FINISHED)


@pytest.mark.parametrize("change", ["status = status", "applied_at = NULL"])
async def test_a_finished_job_is_not_updated_without_being_applied(owner: Acting, change: str) -> None:
    await owner.insert(JOBS, status="Failed")
    await owner.is_refused(f"UPDATE {JOBS} SET {change}", JOB_FINISHED)


@pytest.mark.parametrize("status", ["Pending", "Leased"])
async def test_an_active_job_is_leased_and_reported(owner: Acting, status: str) -> None:
    job = await owner.insert(JOBS, status=status)
    await owner.sql(f"UPDATE {JOBS} SET status = 'Completed', lease_token = 7, response_status = 200 WHERE id = {job}")
    (row,) = await owner.sql(f"SELECT status FROM {JOBS} WHERE id = {job}")
    assert row["status"] == "Completed"


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize("job_status", JobStatus)
async def test_no_job_is_created_for_an_ended_saga(owner: Acting, status: str, job_status: JobStatus) -> None:
    """r02 §3.2: "No jobs may ever be created for this saga again"."""
    saga = await owner.insert(SAGAS, status=status)
    await owner.is_refused(insertion(JOBS, saga_id=saga, status=job_status), NO_JOB)


MANY_JOBS = {
    "many rows": "INSERT{} INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no)"
    " VALUES ({}, 1, '2026-01-01', 1), ({}, 1, '2026-01-01', 1), ({}, 1, '2026-01-01', 1)",
    "a select": "INSERT{} INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no)"
    " SELECT id, subscription_id, next_attempt_at, 1 FROM webhook_delivery_sagas WHERE id IN ({}, {}, {}) ORDER BY id",
}


@pytest.mark.parametrize("status", ENDED)
@pytest.mark.parametrize("way", MANY_JOBS)
async def test_one_ended_saga_among_many_stops_the_whole_insert(owner: Acting, status: str, way: str) -> None:
    sagas = [
        await owner.insert(SAGAS, event_id=number, status=each)
        for number, each in enumerate(["Pending", status, "PendingRetry"])
    ]
    await owner.is_refused(MANY_JOBS[way].format("", *sagas), NO_JOB)


@pytest.mark.one_engine("mariadb", reason="INSERT IGNORE turns errors into warnings there, but not this one")
async def test_an_insert_that_ignores_errors_creates_no_job_for_an_ended_saga(owner: Acting) -> None:
    sagas = [
        await owner.insert(SAGAS, event_id=number, status=each)
        for number, each in enumerate(["Pending", "Completed", "PendingRetry"])
    ]
    await owner.is_refused(MANY_JOBS["many rows"].format(" IGNORE", *sagas), NO_JOB)


@pytest.mark.parametrize("status", OPEN)
async def test_a_job_is_created_for_an_open_saga(owner: Acting, status: str) -> None:
    """r01 §7.2."""
    saga = await owner.insert(SAGAS, status=status)
    await owner.insert(JOBS, saga_id=saga)
    assert len((await owner.stored())[JOBS]) == 1


@pytest.mark.parametrize("first", ["Pending", "Leased"])
@pytest.mark.parametrize("second", ["Pending", "Leased"])
async def test_a_saga_has_one_active_job(owner: Acting, first: str, second: str) -> None:
    """r01 §7.3: no job while "another active job already exists for this saga"."""
    await owner.insert(JOBS, status=first)
    await owner.is_refused(insertion(JOBS, status=second, attempt_at=LATER, attempt_no=2), "uniq_job_active")


@pytest.mark.parametrize("outcome", ["Completed", "Failed"])
async def test_the_next_job_may_start_when_the_last_one_has_finished(owner: Acting, outcome: str) -> None:
    first = await owner.insert(JOBS, status="Leased")
    await owner.sql(f"UPDATE {JOBS} SET status = '{outcome}' WHERE id = {first}")
    await owner.insert(JOBS, attempt_at=LATER, attempt_no=2)
    assert len((await owner.stored())[JOBS]) == 2


@pytest.mark.parametrize("status", ["Completed", "Failed"])
async def test_a_due_time_of_a_saga_has_one_job(owner: Acting, status: str) -> None:
    """r02 §2.1, uniq_job_saga_attempt."""
    await owner.insert(JOBS, status=status)
    await owner.is_refused(insertion(JOBS), "uniq_job_saga_attempt")


# Routing dead letters and tasks


@pytest.mark.parametrize(
    "column",
    [c for c in columns("route_dead_letters") if c.name not in ("resolved_at", "resolution")],
    ids=name,
)
async def test_what_a_routing_dead_letter_says_never_changes(owner: Acting, column: Column) -> None:
    """Seed 004: "Full event_snapshot so it is replayable"."""
    await owner.insert("route_dead_letters")
    value = another(column, owner.family)
    await owner.is_refused(
        f"UPDATE route_dead_letters SET {column.name} = {value}, resolved_at = '{LATER}'",
        "of a routing dead letter only its resolution changes",
    )


@pytest.mark.parametrize("change", ["event_snapshot = '{} '", "error = 'E'", "error = 'e '", "worker_name = 'W'"])
async def test_a_routing_dead_letter_does_not_change_by_a_letters_case_or_a_blank(owner: Acting, change: str) -> None:
    """The snapshot is the event's own text, byte for byte."""
    await owner.insert("route_dead_letters")
    await owner.is_refused(
        f"UPDATE route_dead_letters SET {change}", "of a routing dead letter only its resolution changes"
    )


async def test_a_routing_dead_letter_is_resolved(owner: Acting) -> None:
    await owner.insert("route_dead_letters")
    await owner.sql(f"UPDATE route_dead_letters SET resolved_at = '{LATER}', resolution = 'replayed'")
    (row,) = (await owner.stored())["route_dead_letters"]
    assert row["resolution"] == "replayed"


@pytest.mark.parametrize("column", columns(TASKS), ids=name)
async def test_no_column_of_a_task_that_succeeded_changes(owner: Acting, column: Column) -> None:
    """Seed 003: SUCCESS 屬於終態（Terminal State）; ruling 8: "Status 2 never changes"."""
    await owner.insert(TASKS, status=2)
    value = "0" if column.name == "status" else another(column, owner.family)
    await owner.is_refused(f"UPDATE {TASKS} SET {column.name} = {value}", TASK_ENDED)


@pytest.mark.parametrize("change", ["updated_at = updated_at", "status = 1", "status = 2", "status = 3", "status = 4"])
async def test_a_task_that_failed_for_good_goes_nowhere_but_to_the_start(owner: Acting, change: str) -> None:
    await owner.insert(TASKS, status=4)
    await owner.is_refused(f"UPDATE {TASKS} SET {change}", TASK_ENDED)


async def test_a_task_that_failed_for_good_starts_anew(owner: Acting) -> None:
    """Ruling 8: "4 only to 0 by an audited retry"."""
    await owner.insert(TASKS, status=4, retry_count=3)
    await owner.sql(f"UPDATE {TASKS} SET status = 0, retry_count = 0, version = version + 1")
    (row,) = (await owner.stored())[TASKS]
    assert (row["status"], row["retry_count"]) == (0, 0)


@pytest.mark.parametrize("old", [TaskStatus.PENDING, TaskStatus.PROCESSING, TaskStatus.FAIL_RETRY])
async def test_an_unfinished_task_may_take_any_status(owner: Acting, old: TaskStatus) -> None:
    for new in TaskStatus:
        task = await owner.insert(TASKS, biz_key=f"to {new}", status=int(old))
        await owner.sql(f"UPDATE {TASKS} SET status = {int(new)} WHERE id = {task}")
        (row,) = await owner.sql(f"SELECT status FROM {TASKS} WHERE id = {task}")
        assert row["status"] == new


# Retention, ruling 17

Rows = Sequence[tuple[str, Mapping[str, Any]]]
ROUTED: Rows = [("route_attempts", {})]
RESOLVED = {"resolved_at": MOMENT, "resolution": "replayed"}
FINISHED: Mapping[str, tuple[str, Rows]] = {
    "a completed saga": (SAGAS, [(SAGAS, {"status": "Completed"})]),
    "a dead saga": (SAGAS, [(SAGAS, {"status": "DeadLettered"})]),
    "an applied job": (JOBS, [(JOBS, {"status": "Failed", "applied_at": MOMENT})]),
    "a dead letter": ("dead_letters", [("dead_letters", {})]),
    "a routing decision": ("route_attempts", ROUTED),
    "a resolved routing dead letter": ("route_dead_letters", [("route_dead_letters", RESOLVED)]),
    "a routed event whose sagas are gone": ("events", ROUTED),
    "an event whose routing dead letter is resolved": ("events", [*ROUTED, ("route_dead_letters", RESOLVED)]),
}
UNFINISHED: Mapping[str, tuple[str, Rows]] = {
    **{f"a saga that is {status}": (SAGAS, [(SAGAS, {"status": status})]) for status in OPEN},
    **{f"a job that is {status} and not applied": (JOBS, [(JOBS, {"status": status})]) for status in JobStatus},
    "an event with an ended saga left": ("events", [*ROUTED, (SAGAS, {"status": "Completed"})]),
    "an event with an open saga": ("events", [*ROUTED, (SAGAS, {"status": "Pending"})]),
    "an event that was never routed": ("events", []),
    "an event with an unresolved routing dead letter": ("events", [*ROUTED, ("route_dead_letters", {})]),
    "an unresolved routing dead letter": ("route_dead_letters", [("route_dead_letters", {})]),
}


def story(event: int, rows: Rows) -> list[str]:
    """The rows about this event."""
    return [
        insertion(table, **({"event_id": event} if "event_id" in PLAINEST[table] else {}), **values)
        for table, values in rows
    ]


async def commit_story(engine: Database, rows: Rows) -> None:
    event = await engine.value(insertion("events"))
    for text in story(event, rows):
        await engine.sql(text)


@pytest.mark.parametrize("what", FINISHED)
async def test_retention_deletes_what_is_finished(engine: Database, what: str) -> None:
    """Ruling 17: "role `retention` alone removes whole finished stories"."""
    table, rows = FINISHED[what]
    await commit_story(engine, rows)
    await engine.sql(f"DELETE FROM {table}", role="retention")
    assert await engine.value(f"SELECT COUNT(*) FROM {table}") == 0


@pytest.mark.parametrize("what", UNFINISHED)
async def test_retention_deletes_nothing_that_is_unfinished(engine: Database, what: str) -> None:
    """Ruling 17: "never one with anything unfinished"."""
    table, rows = UNFINISHED[what]
    await commit_story(engine, rows)
    with pytest.raises(StatementFailed, match=NEVER_REMOVED[table]):
        await engine.sql(f"DELETE FROM {table}", role="retention")
    assert await engine.value(f"SELECT COUNT(*) FROM {table}") == 1


async def test_one_unfinished_row_stops_the_whole_delete_of_retention(engine: Database) -> None:
    for number, status in enumerate(SagaStatus):
        await engine.sql(insertion(SAGAS, event_id=number, status=status))
    with pytest.raises(StatementFailed, match=NEVER_REMOVED[SAGAS]):
        await engine.sql(f"DELETE FROM {SAGAS}", role="retention")
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == len(SagaStatus)


async def test_retention_truncates_nothing(engine: Database) -> None:
    for table in NEVER_REMOVED:
        await engine.sql(insertion(table, **FINISHED_ROWS[table]))
        with pytest.raises(StatementFailed, match="denied"):
            await engine.sql(f"TRUNCATE TABLE {table}", role="retention")
        assert await engine.value(f"SELECT COUNT(*) FROM {table}") == 1


async def test_retention_has_no_right_to_delete_from_the_audit_log(engine: Database) -> None:
    await engine.sql(insertion("audit_log"))
    with pytest.raises(StatementFailed, match="denied"):
        await engine.sql("DELETE FROM audit_log", role="retention")
    assert await engine.value("SELECT COUNT(*) FROM audit_log") == 1


async def test_the_audit_log_is_kept_also_from_a_retention_that_was_given_the_right(throwaway: Database) -> None:
    await throwaway.sql(insertion("audit_log"))
    quote_mark = '"' if throwaway.family == "postgresql" else "`"
    group = quote_mark + throwaway.names.group("retention") + quote_mark
    await throwaway.sql(f"GRANT SELECT, DELETE ON {throwaway.names.schema}.audit_log TO {group}", role="admin")
    with pytest.raises(StatementFailed, match=NEVER_REMOVED["audit_log"]):
        await throwaway.sql("DELETE FROM audit_log", role="retention")
    assert await throwaway.value("SELECT COUNT(*) FROM audit_log") == 1


@pytest.mark.parametrize("role", [OWNER, "admin"])
@pytest.mark.parametrize("what", FINISHED)
async def test_nobody_but_retention_deletes_what_is_finished(migrated: Database, what: str, role: str) -> None:
    """Also the server's own superuser, as long as it has not become somebody else."""
    table, rows = FINISHED[what]
    async with acting(migrated, role) as session:
        for text in story(await session.insert("events"), rows):
            await session.sql(text)
        await session.is_refused(f"DELETE FROM {table}", NEVER_REMOVED[table])
    await migrated.close()


PRETENCES = {
    "postgresql": [
        "SET ROLE retention",
        "SET ROLE tidings_retention",
        "SET SESSION AUTHORIZATION tidings_retention",
        "GRANT retention TO tidings_schema_owner",
        "ALTER ROLE tidings_schema_owner RENAME TO retention",
        "CREATE ROLE retention_too IN ROLE retention",
        "SET session_replication_role = replica",
    ],
    "mysql": [
        "SET ROLE retention",
        "SET DEFAULT ROLE retention",
        "GRANT retention TO tidings_schema_owner",
        "RENAME USER tidings_schema_owner TO tidings_retention",
        "CREATE DEFINER = tidings_retention PROCEDURE pretend() SQL SECURITY DEFINER DELETE FROM audit_log",
        "CREATE USER tidings_retention@localhost",
        "CREATE ROLE retention_too",
    ],
}


async def test_the_owner_can_not_become_retention(engine: Database) -> None:
    await engine.sql(insertion(SAGAS, status="Completed"))
    for pretence in PRETENCES[engine.family]:
        with pytest.raises(StatementFailed):
            await engine.sql(pretence)
    with pytest.raises(StatementFailed, match=NEVER_REMOVED[SAGAS]):
        await engine.sql(f"DELETE FROM {SAGAS}")
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == 1


@pytest.mark.one_engine("postgresql", reason="names are looked up in the session's own path there")
@pytest.mark.parametrize(
    "texts",
    [
        ["SET LOCAL application_name = 'tidings_retention'"],
        [
            "CREATE FUNCTION pg_temp.is_retention() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "SET LOCAL search_path = pg_temp, tidings",
        ],
        [
            "CREATE FUNCTION always(name, name) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
            "CREATE OPERATOR tidings.= (LEFTARG = name, RIGHTARG = name, FUNCTION = always)",
            "SET LOCAL search_path = tidings, pg_catalog",
        ],
    ],
    ids=["by the application's name", "by a function of the same name", "by an operator that finds all names equal"],
)
async def test_the_owner_can_not_pass_for_retention(owner: Acting, texts: list[str]) -> None:
    await owner.insert(SAGAS, status="Completed")
    for text in texts:
        await owner.sql(text)
    await owner.is_refused(f"DELETE FROM {SAGAS}", NEVER_REMOVED[SAGAS])


@pytest.mark.one_engine(
    "postgresql", reason="a server of version 14 lets everybody create operators, in the schema `public`"
)
async def test_retention_can_not_deceive_the_guard_of_events_about_what_is_left(engine: Database) -> None:
    """This one calls the saga another event's when it is asked first, and the routing decision the event's own."""
    await commit_story(engine, [*ROUTED, (SAGAS, {"status": "Pending"})])
    async with acting(engine, "admin") as session:
        for text in (
            "CREATE SCHEMA trick",
            "CREATE FUNCTION trick.second(bigint, bigint) RETURNS boolean LANGUAGE sql AS"
            " $$ SELECT set_config('trick.asked', current_setting('trick.asked') || 'x', true) = 'xx' $$",
            "CREATE OPERATOR trick.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trick.second)",
            "GRANT USAGE ON SCHEMA trick TO retention",
            "SET LOCAL SESSION AUTHORIZATION tidings_retention",
            "SET LOCAL trick.asked = ''",
            "SET LOCAL search_path = trick, pg_catalog",
        ):
            await session.sql(text)
        with pytest.raises(StatementFailed, match=NEVER_REMOVED["events"]):
            await session.sql("DELETE FROM tidings.events")


@pytest.mark.one_engine(
    "postgresql", reason="since version 16 whoever creates a role is a member of it, so the migrating login may be one"
)
@pytest.mark.parametrize("how", ["ADMIN TRUE, INHERIT FALSE, SET FALSE", "INHERIT TRUE, SET TRUE"])
async def test_a_login_that_may_become_retention_is_not_yet_retention(migrated: Database, how: str) -> None:
    async with acting(migrated, "admin") as session:
        await session.insert(SAGAS, status="Completed")
        await session.sql("CREATE ROLE landlord CREATEROLE")
        await session.sql("GRANT schema_owner TO landlord")
        await session.sql(f"GRANT retention TO landlord WITH {how}")
        await session.sql("SET LOCAL SESSION AUTHORIZATION landlord")
        await session.is_refused(f"DELETE FROM {SAGAS}", NEVER_REMOVED[SAGAS])
    await migrated.close()


@pytest.mark.one_engine(
    "mariadb", reason="there the guards know the login by its name, and the server's collation finds é and e equal"
)
@pytest.mark.parametrize(
    "login",
    ["TIDINGS_RETENTION", "tidings_rétention", "tidings_retention@home", "tidings_retention_", "retention"],
)
async def test_a_login_with_a_similar_name_is_not_retention(engine: Database, login: str) -> None:
    await engine.sql(insertion(SAGAS, status="Completed"))
    user = f"`{login}`@`127.0.0.1`"
    url = engine.url("retention").partition("@")[2]
    async with AsyncExitStack() as after:
        await engine.sql(f"CREATE USER {user} IDENTIFIED BY 'pw'", role="admin")
        after.push_async_callback(engine.sql, f"DROP USER {user}", role="admin")
        await engine.sql(f"GRANT ALL PRIVILEGES ON tidings.* TO {user}", role="admin")
        similar = await open_engine(f"mysql://{quote(login)}:pw@{url}", owner=login, names=engine.names)
        after.push_async_callback(similar.close)
        with pytest.raises(StatementFailed, match=NEVER_REMOVED[SAGAS]):
            async with similar.bare_session() as session:
                await session.command(f"DELETE FROM {SAGAS}")
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == 1


# Numbers that make no sense

SENSELESS: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "a job's attempt 0": (JOBS, {"attempt_no": 0}, "job_counts_not_negative"),
    "a job's negative attempt": (JOBS, {"attempt_no": -1}, "job_counts_not_negative"),
    "negative lease resets": (JOBS, {"lease_resets": -1}, "job_counts_not_negative"),
    "a negative retry-after": (JOBS, {"retry_after": -1}, "job_counts_not_negative"),
    "a negative generation": (SAGAS, {"generation": -1}, "saga_counts_not_negative"),
    "a negative attempt count": (SAGAS, {"attempt_count": -1}, "saga_counts_not_negative"),
    "a negative retry count": (TASKS, {"retry_count": -1}, "task_counts_not_negative"),
    "a negative number of retries": (TASKS, {"max_retries": -1}, "task_counts_not_negative"),
    "a negative version": (TASKS, {"version": -1}, "task_counts_not_negative"),
    "a negative position": ("route_worker_cursors", {"position": -1}, "cursor_position_not_negative"),
    "a hole that ends before it starts": ("route_holes", {"lo": 2, "hi": 1}, "hole_is_a_range"),
    "a second config version": ("config_version", {"id": 2}, "config_version_is_one_row"),
    "config version 0": ("config_version", {"id": 0}, "config_version_is_one_row"),
    "the same config version": ("config_version", {"id": 1}, "config_version_pkey|PRIMARY"),
    "a second installation": ("installation", {"id": 2}, "installation_is_one_row"),
    "the same installation": ("installation", {"id": 1}, "installation_pkey|PRIMARY"),
    "a task route without a task": ("routes", {"target": "task"}, "route_task_named"),
    "a webhook route with a task": ("routes", {"task_biz_type": "t"}, "route_task_named"),
    "no retries at all": ("subscriptions", {"max_retry_limit": 0}, "subscription_limits_positive"),
    "no delay": ("subscriptions", {"base_delay_seconds": 0}, "subscription_limits_positive"),
    "a negative delay": ("subscriptions", {"base_delay_seconds": -1}, "subscription_limits_positive"),
    "no time": ("subscriptions", {"timeout_seconds": 0}, "subscription_limits_positive"),
    "nothing in flight": ("subscriptions", {"max_in_flight": 0}, "subscription_limits_positive"),
    "one bad limit among good ones": (
        "subscriptions",
        {"max_retry_limit": 1, "base_delay_seconds": 1, "timeout_seconds": 1, "max_in_flight": -1},
        "subscription_limits_positive",
    ),
}


@pytest.mark.parametrize("what", SENSELESS)
async def test_a_number_that_makes_no_sense_is_not_stored(owner: Acting, what: str) -> None:
    table, values, constraint = SENSELESS[what]
    await owner.is_refused(insertion(table, **values), constraint)


@pytest.mark.one_engine("postgresql", reason="MariaDB has no such numbers")
@pytest.mark.parametrize("column", ["base_delay_seconds", "timeout_seconds"])
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_a_number_that_is_none_is_not_stored(owner: Acting, column: str, number: str) -> None:
    await owner.is_refused(insertion("subscriptions", **{column: number}), "subscription_limits_positive")


SENSIBLE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a first attempt": (JOBS, {"attempt_no": 1, "retry_after": 0}),
    "a hole of one": ("route_holes", {"lo": 1, "hi": 1}),
    "a task route": ("routes", {"target": "task", "task_biz_type": "t"}),
    "a task without retries": (TASKS, {"max_retries": 0}),
    "the smallest limits": ("subscriptions", {"max_retry_limit": 1, "timeout_seconds": 1, "max_in_flight": 1}),
    "no limits of its own": ("subscriptions", {}),
}


@pytest.mark.parametrize("what", SENSIBLE)
async def test_the_smallest_number_that_makes_sense_is_stored(owner: Acting, what: str) -> None:
    table, values = SENSIBLE[what]
    await owner.insert(table, **values)


async def test_a_saga_of_each_generation_is_stored_once(owner: Acting) -> None:
    """Ruling 1: "`generation` joins it"."""
    await owner.insert(SAGAS)
    await owner.insert(SAGAS, generation=1)
    await owner.is_refused(insertion(SAGAS, generation=1), "uniq_saga_event_subscription")


# It is the guards that refuse

# In this order: a guard that refuses everybody comes after the one beside it that lets retention pass. Where there is
# nothing to insert, the row is left of the guard before.
EVERY_GUARD: Mapping[str, tuple[str, str, str]] = {
    "event_changed": ("events", insertion("events"), "UPDATE events SET event_type = 'b'"),
    "event_removed": ("events", insertion("events"), "DELETE FROM events"),
    "event_truncated": ("events", insertion("events"), "TRUNCATE events"),
    "event_written": ("events", "", "INSERT INTO events (id, event_type, payload) VALUES (5000, 'a', '{}')"),
    "event_numbered": ("events", "", "INSERT INTO events (id, event_type, payload) VALUES (-1, 'a', '{}')"),
    "saga_terminal": (SAGAS, insertion(SAGAS, status="Completed"), f"UPDATE {SAGAS} SET attempt_count = 1"),
    "saga_removed": (SAGAS, insertion(SAGAS, event_id=2, status="Completed"), f"DELETE FROM {SAGAS}"),
    "saga_removed_open": (SAGAS, insertion(SAGAS, event_id=3), f"DELETE FROM {SAGAS} WHERE event_id = 3"),
    "saga_truncated": (SAGAS, "", f"TRUNCATE {SAGAS}"),
    "job_saga_open": (
        JOBS,
        insertion(SAGAS, status="Completed"),
        MANY_JOBS["a select"].format("", 0, 0, f"(SELECT MAX(id) FROM {SAGAS})"),
    ),
    "job_finished": (
        JOBS,
        insertion(JOBS, saga_id=NO_SAGA + 1, status="Completed"),
        f"UPDATE {JOBS} SET attempt_no = 2",
    ),
    "job_removed": (JOBS, insertion(JOBS, applied_at=MOMENT), f"DELETE FROM {JOBS} WHERE saga_id = {NO_SAGA}"),
    "job_removed_unapplied": (JOBS, insertion(JOBS), f"DELETE FROM {JOBS} WHERE saga_id = {NO_SAGA}"),
    "job_truncated": (JOBS, "", f"TRUNCATE {JOBS}"),
    "dead_letter_changed": ("dead_letters", insertion("dead_letters"), "UPDATE dead_letters SET event_id = 2"),
    "dead_letter_removed": ("dead_letters", insertion("dead_letters", saga_id=2), "DELETE FROM dead_letters"),
    "dead_letter_truncated": ("dead_letters", "", "TRUNCATE dead_letters"),
    "route_attempt_changed": ("route_attempts", insertion("route_attempts"), "UPDATE route_attempts SET matched = 2"),
    "route_attempt_removed": ("route_attempts", "", "DELETE FROM route_attempts"),
    "route_attempt_truncated": ("route_attempts", "", "TRUNCATE route_attempts"),
    "route_dead_letter_changed": (
        "route_dead_letters",
        insertion("route_dead_letters"),
        "UPDATE route_dead_letters SET error = 'other'",
    ),
    "route_dead_letter_removed": (
        "route_dead_letters",
        insertion("route_dead_letters", idempotency_key="k2", **RESOLVED),
        "DELETE FROM route_dead_letters WHERE idempotency_key = 'k2'",
    ),
    "route_dead_letter_removed_unresolved": (
        "route_dead_letters",
        "",
        "DELETE FROM route_dead_letters",
    ),
    "route_dead_letter_truncated": ("route_dead_letters", "", "TRUNCATE route_dead_letters"),
    "task_terminal": (TASKS, insertion(TASKS, status=2), f"UPDATE {TASKS} SET version = 1"),
    "audit_changed": ("audit_log", insertion("audit_log"), "UPDATE audit_log SET actor = 'other'"),
    "audit_removed": ("audit_log", insertion("audit_log"), "DELETE FROM audit_log"),
    "audit_truncated": ("audit_log", insertion("audit_log"), "TRUNCATE audit_log"),
}


# These refuse nothing: they count changes of configuration, see tests/roles/routes/test_config_version.py.
COUNTERS = (
    *("route_config_changed", "subscription_config_changed", "route_added", "route_changed", "route_removed"),
    *("subscription_added", "subscription_changed", "subscription_removed"),
)


def guards(family: str) -> list[str]:
    return [guard for table in tables_of(family).values() if table.guards for guard in table.guards[family]]


@pytest.mark.parametrize("family", ["postgresql", "mysql"])
def test_every_guard_of_the_written_list_is_tried(family: str) -> None:
    assert set(guards(family)) - set(COUNTERS) <= set(EVERY_GUARD)


async def test_without_a_guard_the_statement_that_it_refused_passes(throwaway: Database) -> None:
    """So each refusal above is the guard's doing, and a test that tries it can fail."""
    owner = await throwaway.open(OWNER)
    async with owner.bare_session() as session:
        for guard in [guard for guard in EVERY_GUARD if guard in guards(throwaway.family)]:
            table, before, text = EVERY_GUARD[guard]
            await session.command(before or "SELECT 1")
            with pytest.raises(StatementFailed):
                await session.command(text)
            await session.command(
                f"DROP TRIGGER {guard}" + (f" ON {table}" if throwaway.family == "postgresql" else "")
            )
            await session.command(text)


@pytest.mark.one_engine("mariadb", reason="on PostgreSQL triggers refuse TRUNCATE")
async def test_without_the_guard_table_truncate_passes(throwaway: Database) -> None:
    await throwaway.sql("DROP TABLE truncate_guard")
    for table in NEVER_REMOVED:
        await throwaway.sql(f"TRUNCATE TABLE {table}")
