"""The schema that stands in the servers is the one that `tidings.tables` and the seeds describe."""

import datetime

import pytest

from tests.support.database import Database
from tidings.db.catalogue.spelling import differences, expected_lines
from tidings.errors import StatementFailed
from tidings.tables import TABLES, columns_of, tables_of

pytestmark = pytest.mark.slow

EVENT = "INSERT INTO events (event_type, payload{columns}) VALUES ('a', '{payload}'{values})"


async def drift(engine: Database) -> list[str]:
    return differences(expected_lines(engine.kind), await engine.schema_lines())


async def test_the_catalogue_of_the_server_is_the_written_list(engine: Database) -> None:
    """Seed 002, phase 1: "Create all tables exactly as specified"."""
    assert await drift(engine) == []


SEED_COLUMNS = {
    "webhook_delivery_sagas": "id event_id subscription_id status attempt_count next_attempt_at final_error_code"
    " created_at updated_at",
    "webhook_delivery_jobs": "id saga_id status lease_until attempt_at response_status error_code",
    "dead_letters": "id saga_id event_id subscription_id final_error_code failed_at payload_snapshot",
    "sys_pending_tasks": "id biz_type biz_key status priority payload result_msg retry_count max_retries next_run_time"
    " version created_at updated_at",
    "events": "id event_type payload created_at",
    "subscriptions": "id event_type callback_url active verified",
}
SEED_INDEXES = {
    "idx_saga_event": ("event_id", "subscription_id"),
    "idx_saga_status_retry": ("status", "next_attempt_at"),
    "idx_saga_status": ("status",),
    # Ruling 1: the generation joins the key, so that a requeue can make a new saga.
    "uniq_saga_event_subscription": ("event_id", "subscription_id", "generation"),
    "idx_job_saga": ("saga_id",),
    "idx_job_status_lease": ("status", "lease_until"),
    "uniq_job_saga_attempt": ("saga_id", "attempt_at"),
    "idx_dead_saga": ("saga_id",),
    "idx_dead_event": ("event_id",),
    "uk_biz": ("biz_type", "biz_key"),
    "idx_scan": ("status", "next_run_time", "priority"),
}


def test_the_written_list_has_every_column_and_index_of_the_seeds() -> None:
    tables = tables_of("postgresql")
    for table, columns in SEED_COLUMNS.items():
        assert set(columns.split()) <= {column.name for column in tables[table].columns}
    indexes = {index.name: index.columns for table in TABLES for index in table.indexes}
    assert {name: indexes.get(name) for name in SEED_INDEXES} == SEED_INDEXES


def test_both_engines_have_the_same_tables_and_columns_apart_from_the_listed_exceptions() -> None:
    only_mysql = {
        f"{name}.{column.name}"
        for name, table in tables_of("mysql").items()
        for column in columns_of(table, "mysql")
        if name not in tables_of("postgresql") or column not in columns_of(tables_of("postgresql")[name], "postgresql")
    }
    assert {name for name in only_mysql if not name.startswith("truncate_guard.")} == {
        "event_writers.id",
        "webhook_delivery_jobs.active_saga_id",
        "webhook_delivery_jobs.unapplied",
        "sys_pending_tasks.claimable",
    }


DAMAGE = {
    "DROP INDEX idx_saga_lane{on_sagas}": "index webhook_delivery_sagas.idx_saga_lane is missing",
    "ALTER TABLE events DROP CONSTRAINT event_payload_size": "check events.event_payload_size is missing",
    "DROP TRIGGER saga_terminal{pg_on_sagas}": "guard webhook_delivery_sagas.saga_terminal is missing",
    "ALTER TABLE subscriptions DROP COLUMN description": "column subscriptions.description is missing",
    "ALTER TABLE gates ADD COLUMN extra int": "column gates.extra is not ours",
    "CREATE TABLE stray (id int)": "table stray is not ours",
    "ALTER TABLE routes {retype} {bigger}": "column routes.task_biz_type is text 60",
    "ALTER TABLE routes ALTER COLUMN dry_run SET DEFAULT true": "column routes.dry_run is bool, not null, default true",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_any_single_piece_that_is_removed_or_changed_is_named(throwaway: Database, damage: str) -> None:
    engine = throwaway
    words = {
        "on_sagas": " ON webhook_delivery_sagas" if engine.family == "mysql" else "",
        "pg_on_sagas": " ON webhook_delivery_sagas" if engine.family == "postgresql" else "",
        "retype": "MODIFY task_biz_type" if engine.family == "mysql" else "ALTER COLUMN task_biz_type TYPE",
        "bigger": "varchar(60) NOT NULL DEFAULT ''" if engine.family == "mysql" else "varchar(60)",
    }
    await engine.sql(damage.format(**words))
    assert any(line.startswith(DAMAGE[damage]) for line in await drift(engine)), await drift(engine)


async def test_the_payload_comes_back_byte_for_byte(engine: Database) -> None:
    """Odd spacing, key order, doubled keys and escapes are the producer's own."""
    payload = '{"b" : 1,  "a":[ 1.0,1e2 ], "b":2, "t":"\\u00e9/\\u0000x" }'
    escaped = payload.replace("\\", "\\\\") if engine.family == "mysql" else payload
    await engine.sql(EVENT.format(payload=escaped, columns="", values=""))
    assert await engine.value("SELECT payload FROM events") == payload


async def test_ids_that_differ_in_case_or_trailing_space_are_different_ids(engine: Database) -> None:
    for external_id in ("abc", "ABC", "abc "):
        await engine.sql(EVENT.format(payload="{}", columns=", external_id", values=f", '{external_id}'"))
    assert await engine.value("SELECT COUNT(*) FROM events WHERE external_id = 'abc'") == 1
    with pytest.raises(StatementFailed):
        await engine.sql(EVENT.format(payload="{}", columns=", external_id", values=", 'abc'"))
    await engine.sql(EVENT.format(payload="{}", columns=", external_id, event_domain", values=", 'abc', 'other'"))


async def test_a_producer_in_another_time_zone_writes_utc(engine: Database) -> None:
    producer = await engine.open("admin")
    async with producer.bare_session() as session:
        zone = "SET TIME ZONE 'Asia/Taipei'" if engine.family == "postgresql" else "SET time_zone = '+08:00'"
        await session.command(zone)
        await session.command(EVENT.format(payload="{}", columns="", values=""))
    (row,) = await engine.sql("SELECT created_at FROM events")
    assert row["created_at"].tzinfo is not None
    assert abs(datetime.datetime.now(datetime.UTC) - row["created_at"]) < datetime.timedelta(seconds=60)


async def test_a_plain_insert_gets_a_correlation_id_a_domain_and_a_time(engine: Database) -> None:
    await engine.sql(EVENT.format(payload="{}", columns="", values=""))
    (row,) = await engine.sql("SELECT * FROM events")
    assert len(row["correlation_id"]) == 36
    assert (row["event_domain"], row["event_stream"], row["external_id"]) == ("default", "", None)


REFUSED_EVENTS = {
    "an empty type": ("''", "'{}'", "'c'"),
    "a type with a space": ("'a b'", "'{}'", "'c'"),
    "a type with a newline at its end": ("'a\n'", "'{}'", "'c'"),
    "a type that is not ASCII": ("'é'", "'{}'", "'c'"),
    "a type that is too long": (f"'{'t' * 101}'", "'{}'", "'c'"),
    "no JSON": ("'a'", "'{'", "'c'"),
    "no payload": ("'a'", "NULL", "'c'"),
    "a payload over 1 MiB": ("'a'", "'\"" + "x" * 1048577 + "\"'", "'c'"),
    "an empty correlation id": ("'a'", "'{}'", "''"),
    "a correlation id with a space": ("'a'", "'{}'", "'a b'"),
    "a correlation id that is too long": ("'a'", "'{}'", f"'{'c' * 129}'"),
}


@pytest.mark.parametrize("case", REFUSED_EVENTS)
async def test_the_database_itself_refuses_a_malformed_event(engine: Database, case: str) -> None:
    type, payload, correlation = REFUSED_EVENTS[case]
    with pytest.raises(StatementFailed):
        await engine.sql(
            f"INSERT INTO events (event_type, payload, correlation_id) VALUES ({type}, {payload}, {correlation})"
        )
    assert await engine.value("SELECT COUNT(*) FROM events") == 0


@pytest.mark.parametrize("id", ["5", "-1", "0"])
async def test_nobody_chooses_the_id_of_an_event(engine: Database, id: str) -> None:
    """Also id 0 under NO_AUTO_VALUE_ON_ZERO: a router that starts at 0 would never see it."""
    owner = await engine.open("schema_owner")
    async with owner.bare_session() as session:
        if engine.family == "mysql":
            await session.command("SET sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'")
        with pytest.raises(StatementFailed):
            await session.command(f"INSERT INTO events (id, event_type, payload) VALUES ({id}, 'a', '{{}}')")


STATUSES = {
    "webhook_delivery_sagas": "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status)"
    " VALUES (1, 1, 'c', '{}')",
    "webhook_delivery_jobs": "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no,"
    " status) VALUES (1, 1, '2026-01-01', 1, '{}')",
    "route_attempts": "INSERT INTO route_attempts (event_id, worker_name, idempotency_key, status)"
    " VALUES (1, 'w', 'k', '{}')",
    "sys_pending_tasks": "INSERT INTO sys_pending_tasks (biz_type, biz_key, status) VALUES ('T', 'k', '{}')",
}


@pytest.mark.parametrize("table", STATUSES)
@pytest.mark.parametrize("status", ["99", "-1", "pending", "Done", ""])
async def test_only_legal_statuses_are_stored_also_by_a_session_that_is_not_strict(
    engine: Database, table: str, status: str
) -> None:
    """Ruling 15: a CHECK stands beside the ENUM, which alone would store an empty string."""
    owner = await engine.open("schema_owner")
    async with owner.bare_session() as session:
        if engine.family == "mysql":
            await session.command("SET sql_mode = ''")
            if table == "sys_pending_tasks" and not status.lstrip("-").isdigit():
                pytest.skip("a session that is not strict stores text in a number as 0, which is a legal status")
        with pytest.raises(StatementFailed):
            await session.command(STATUSES[table].format(status))
