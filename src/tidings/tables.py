"""The tables, written once for both engines: what the catalogues of a healthy installation must show.

The migrations make them, `tidings doctor` and the tests compare. Columns and indexes follow the seeds; what goes
beyond them is said in docs/decisions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tidings.model.dead_letter import MassRequeueStatus
from tidings.model.endpoint_check import CheckKind, CheckOutcome
from tidings.model.job import JobStatus
from tidings.model.retention import COUNTED
from tidings.model.route import RouteAttemptStatus, RouteTarget
from tidings.model.saga import SagaStatus
from tidings.model.subscription import Verification
from tidings.model.totals import DURATIONS, OUTCOMES


@dataclass(frozen=True)
class Column:
    """`default` is a literal, `now`, `uuid`, `assigned` (drawn by the database) or `computed` (from other columns)."""

    name: str
    type: str
    default: str = ""
    null: bool = False
    mysql_only: bool = False


@dataclass(frozen=True)
class Index:
    """`where` makes it partial on PostgreSQL; MySQL has no such thing and may index other columns instead."""

    name: str
    columns: tuple[str, ...]
    unique: bool = False
    where: str = ""
    mysql_columns: tuple[str, ...] = ()
    postgresql_only: bool = False


@dataclass(frozen=True)
class Table:
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ("id",)
    indexes: tuple[Index, ...] = ()
    checks: tuple[str, ...] = ()
    guards: Mapping[str, tuple[str, ...]] | None = None
    mysql_only: bool = False


def _any_of(*values: Enum | str) -> str:
    return "one of " + " ".join(str(value.value if isinstance(value, Enum) else value) for value in values)


def _id() -> Column:
    return Column("id", "bigint", "assigned")


def _text(name: str, length: int, default: str = "", *, null: bool = False) -> Column:
    return Column(name, f"text {length}", default, null)


def _instant(name: str, default: str = "now", *, null: bool = False) -> Column:
    return Column(name, "instant", "" if null else default, null)


def _maybe(name: str, type: str) -> Column:
    return Column(name, type, null=True)


def _index(name: str, *columns: str, where: str = "", mysql: tuple[str, ...] = ()) -> Index:
    return Index(name, columns, where=where, mysql_columns=mysql)


def _unique(name: str, *columns: str, where: str = "", mysql: tuple[str, ...] = ()) -> Index:
    return Index(name, columns, unique=True, where=where, mysql_columns=mysql)


def _guards(postgresql: str, mysql: str) -> Mapping[str, tuple[str, ...]]:
    return {"postgresql": tuple(postgresql.split()), "mysql": tuple(mysql.split())}


OPEN_SAGA = "status in (Pending InProgress PendingRetry)"
ACTIVE_JOB = "status in (Pending Leased)"
UNAPPLIED_JOB = "status in (Completed Failed) and applied_at is null"
CLAIMABLE_TASK = "status in (0 3)"
TASK_NOT_CLAIMABLE = "status in (1 2 4)"

_TASK_COLUMNS = (
    _text("biz_type", 50),
    _text("biz_key", 100),
    Column("status", "small", "0"),
    Column("priority", "small", "10"),
    _maybe("payload", "json"),
    _maybe("result_msg", "long text"),
    Column("retry_count", "int", "0"),
    Column("max_retries", "int", "3"),
    _instant("next_run_time"),
    Column("version", "int", "0"),
    _text("worker_id", 100, null=True),
    _text("correlation_id", 128, "uuid"),
    _instant("created_at"),
    _instant("updated_at"),
)

EVENTS = Table(
    "events",
    (
        _id(),
        _text("event_domain", 100, "'default'"),
        _text("event_type", 100),
        _text("event_stream", 100, "''"),
        _text("external_id", 255, null=True),
        Column("payload", "json"),
        _text("correlation_id", 128, "uuid"),
        _instant("created_at"),
    ),
    indexes=(
        _index("idx_event_created", "created_at"),
        _index("idx_event_type", "event_type"),
        # InnoDB's own indexes end with the id anyway.
        Index("idx_event_type_id", ("event_type", "id"), postgresql_only=True),
        _index("idx_event_correlation", "correlation_id", "id", mysql=("correlation_id",)),
        _unique("uniq_event_external", "event_domain", "external_id", where="external_id is not null"),
    ),
    checks=(
        "event_domain_given",
        "event_type_visible_ascii",
        "event_external_id_given",
        "event_correlation_id_visible_ascii",
        "event_payload_size",
    ),
    guards=_guards(
        "event_changed event_removed event_truncated",
        "event_written event_numbered event_changed event_removed",
    ),
)

EVENT_WRITERS = Table("event_writers", (_id(),), mysql_only=True)

SUBSCRIPTIONS = Table(
    "subscriptions",
    (
        _id(),
        _text("event_domain", 100, "'default'"),
        _text("event_type", 100),
        _text("callback_url", 2048),
        _text("pending_callback_url", 2048, null=True),
        Column("active", "bool", "true"),
        Column("verified", "bool", "false"),
        Column("verification", _any_of(*Verification), f"'{Verification.PROOF}'"),
        Column("paused", "bool", "false"),
        _text("description", 500, "''"),
        _maybe("secrets", "bytes"),
        _maybe("headers", "bytes"),
        _maybe("max_retry_limit", "int"),
        _maybe("base_delay_seconds", "real"),
        _maybe("timeout_seconds", "real"),
        _maybe("max_in_flight", "int"),
        Column("config_version", "bigint", "1"),
        _instant("created_at"),
        _instant("updated_at"),
    ),
    checks=(
        "subscription_event_type_visible_ascii",
        "subscription_verification_known",
        "subscription_limits_positive",
    ),
    guards=_guards("subscription_config_changed", "subscription_added subscription_changed subscription_removed"),
)

SAGAS = Table(
    "webhook_delivery_sagas",
    (
        _id(),
        Column("event_id", "bigint"),
        Column("subscription_id", "bigint"),
        Column("generation", "int", "0"),
        Column("status", _any_of(*SagaStatus), f"'{SagaStatus.PENDING}'"),
        Column("attempt_count", "int", "0"),
        _instant("next_attempt_at"),
        _text("final_error_code", 100, null=True),
        _text("correlation_id", 128),
        _instant("created_at"),
        _instant("updated_at"),
    ),
    indexes=(
        _index("idx_saga_event", "event_id", "subscription_id"),
        _index("idx_saga_status_retry", "status", "next_attempt_at", where=OPEN_SAGA),
        _index("idx_saga_status", "status"),
        _index("idx_saga_lane", "status", "subscription_id", "next_attempt_at", where=OPEN_SAGA),
        _unique("uniq_saga_event_subscription", "event_id", "subscription_id", "generation"),
    ),
    checks=("saga_status_known", "saga_counts_not_negative"),
    guards=_guards(
        "saga_terminal saga_removed_open saga_removed saga_truncated",
        "saga_terminal saga_removed",
    ),
)

JOBS = Table(
    "webhook_delivery_jobs",
    (
        _id(),
        Column("saga_id", "bigint"),
        Column("subscription_id", "bigint"),
        Column("status", _any_of(*JobStatus), f"'{JobStatus.PENDING}'"),
        _instant("lease_until"),
        _instant("attempt_at", ""),
        Column("attempt_no", "int"),
        _text("worker_id", 100, null=True),
        Column("lease_token", "bigint", "0"),
        Column("lease_resets", "int", "0"),
        _maybe("response_status", "int"),
        _text("error_code", 100, null=True),
        _maybe("retry_after", "int"),
        _maybe("response_excerpt", "bytes"),
        _maybe("duration_ms", "int"),
        _instant("created_at"),
        _instant("finished_at", null=True),
        _instant("applied_at", null=True),
        Column("active_saga_id", "bigint", "computed", null=True, mysql_only=True),
        Column("unapplied", "small", "computed", null=True, mysql_only=True),
    ),
    indexes=(
        _index("idx_job_saga", "saga_id"),
        _index("idx_job_status_lease", "status", "lease_until", where=ACTIVE_JOB),
        _unique("uniq_job_saga_attempt", "saga_id", "attempt_at"),
        _unique("uniq_job_active", "saga_id", where=ACTIVE_JOB, mysql=("active_saga_id",)),
        _index("idx_job_unapplied", "id", where=UNAPPLIED_JOB, mysql=("unapplied",)),
    ),
    checks=("job_status_known", "job_counts_not_negative"),
    guards=_guards(
        "job_saga_open job_finished job_removed_unapplied job_removed job_truncated",
        "job_saga_open job_finished job_removed",
    ),
)

DELIVERY_LANES = Table(
    "delivery_lanes",
    (
        Column("subscription_id", "bigint"),
        Column("window_size", "int"),
        Column("failures", "int", "0"),
        _instant("last_failure_at", null=True),
        _text("last_error_code", 100, null=True),
        _instant("updated_at"),
    ),
    key=("subscription_id",),
    indexes=(_index("idx_lane_updated", "updated_at"),),
    checks=("lane_counts",),
)

DEAD_LETTERS = Table(
    "dead_letters",
    (
        _id(),
        Column("saga_id", "bigint"),
        Column("event_id", "bigint"),
        Column("subscription_id", "bigint"),
        _text("final_error_code", 100, null=True),
        _instant("failed_at"),
        Column("payload_snapshot", "json"),
    ),
    indexes=(
        _unique("idx_dead_saga", "saga_id"),
        _index("idx_dead_event", "event_id"),
        _index("idx_dead_subscription", "subscription_id", "id"),
    ),
    guards=_guards(
        "dead_letter_changed dead_letter_removed dead_letter_truncated",
        "dead_letter_changed dead_letter_removed",
    ),
)

ROUTES = Table(
    "routes",
    (
        _id(),
        _text("event_domain", 100, "'*'"),
        _text("event_type", 100),
        _text("event_stream", 100, "'*'"),
        Column("target", _any_of(*RouteTarget)),
        _text("task_biz_type", 50, "''"),
        Column("enabled", "bool", "true"),
        Column("dry_run", "bool", "false"),
        _instant("created_at"),
        _instant("updated_at"),
    ),
    indexes=(_unique("uniq_route", "target", "task_biz_type", "event_domain", "event_type", "event_stream"),),
    checks=("route_target_known", "route_task_named"),
    guards=_guards("route_config_changed", "route_added route_changed route_removed"),
)

GATES = Table(
    "gates",
    (
        _text("name", 120),
        Column("is_open", "bool", "false"),
        _text("reason", 500, "''"),
        _text("changed_by", 200, "''"),
        _instant("changed_at"),
    ),
    key=("name",),
)

ROUTE_WORKER_CURSORS = Table(
    "route_worker_cursors",
    (
        _text("worker_name", 100),
        _text("event_domain", 100, "'*'"),
        Column("position", "bigint", "0"),
        _maybe("last_event_id", "bigint"),
        _text("last_event_correlation_id", 128, null=True),
        _instant("last_event_created_at", null=True),
        Column("runs", "bigint", "0"),
        *(Column(f"{status}_count", "bigint", "0") for status in RouteAttemptStatus),
        _maybe("last_run_summary", "json"),
        _instant("created_at"),
        _instant("updated_at"),
    ),
    key=("worker_name",),
    indexes=(_unique("uniq_cursor_domain", "event_domain"),),
    checks=("cursor_position_not_negative",),
)

ROUTE_HOLES = Table(
    "route_holes",
    (_text("worker_name", 100), Column("lo", "bigint"), Column("hi", "bigint"), _instant("seen_at")),
    key=("worker_name", "lo"),
    checks=("hole_is_a_range",),
)

ROUTE_ATTEMPTS = Table(
    "route_attempts",
    (
        _id(),
        Column("event_id", "bigint"),
        _text("worker_name", 100),
        _maybe("route_id", "bigint"),
        _text("route_kind", 20, "''"),
        Column("status", _any_of(*RouteAttemptStatus)),
        Column("matched", "int", "0"),
        _text("reason", 500, "''"),
        Column("attempt_no", "int", "1"),
        _text("idempotency_key", 200),
        _instant("created_at"),
        _text("detail", 500, "''"),
    ),
    indexes=(
        _unique("uniq_route_attempt", "idempotency_key", "attempt_no"),
        _index("idx_route_attempt_event", "event_id"),
    ),
    checks=("route_attempt_status_known",),
    guards=_guards(
        "route_attempt_changed route_attempt_removed route_attempt_truncated",
        "route_attempt_changed route_attempt_removed",
    ),
)

ROUTE_DEAD_LETTERS = Table(
    "route_dead_letters",
    (
        _id(),
        Column("event_id", "bigint"),
        _text("worker_name", 100),
        _text("idempotency_key", 200),
        Column("event_snapshot", "json"),
        Column("error", "long text"),
        _instant("created_at"),
        _instant("resolved_at", null=True),
        _text("resolution", 100, null=True),
    ),
    indexes=(
        _unique("uniq_route_dead_letter", "idempotency_key"),
        _index("idx_route_dead_letter_event", "event_id"),
    ),
    guards=_guards(
        "route_dead_letter_changed route_dead_letter_removed_unresolved route_dead_letter_removed"
        " route_dead_letter_truncated",
        "route_dead_letter_changed route_dead_letter_removed",
    ),
)

TASKS = Table(
    "sys_pending_tasks",
    (
        Column("id", "unsigned bigint", "assigned"),
        *_TASK_COLUMNS,
        Column("claimable", "small", "computed", null=True, mysql_only=True),
    ),
    indexes=(
        _unique("uk_biz", "biz_type", "biz_key"),
        _index("idx_scan", "status", "next_run_time", "priority"),
        _index(
            "idx_task_claim",
            "biz_type",
            "priority",
            "next_run_time",
            "id",
            where=CLAIMABLE_TASK,
            mysql=("claimable", "biz_type", "priority", "next_run_time", "id"),
        ),
        _index("idx_task_updated", "status", "updated_at", where=TASK_NOT_CLAIMABLE),
    ),
    checks=("task_status_known", "task_counts_not_negative"),
    guards=_guards("task_terminal", "task_terminal"),
)

TASKS_HISTORY = Table(
    "sys_pending_tasks_history",
    (Column("id", "unsigned bigint"), *_TASK_COLUMNS, _instant("archived_at")),
    indexes=(
        _index("idx_task_history_biz", "biz_type", "biz_key"),
        _index("idx_task_history_archived", "archived_at"),
    ),
)

WORKER_PRESENCE = Table(
    "worker_presence",
    (
        _text("worker_id", 100),
        _text("process", 40),
        _text("host", 255),
        Column("pid", "int"),
        _text("version", 40),
        _instant("started_at"),
        _instant("seen_at"),
    ),
    key=("worker_id",),
)

MASS_REQUEUES = Table(
    "mass_requeues",
    (
        _id(),
        Column("status", _any_of(*MassRequeueStatus), f"'{MassRequeueStatus.RUNNING}'"),
        Column("filter", "json"),
        Column("rate", "int"),
        _text("requested_by", 200),
        Column("total", "bigint"),
        Column("position", "bigint", "0"),
        Column("last_id", "bigint"),
        *(Column(f"{outcome}_count", "bigint", "0") for outcome in ("started", "already", "refused")),
        _instant("created_at"),
        _instant("updated_at"),
        _instant("finished_at", null=True),
    ),
    checks=("mass_requeue_status_known", "mass_requeue_counts"),
)

ENDPOINT_CHECKS = Table(
    "endpoint_checks",
    (
        _id(),
        Column("subscription_id", "bigint"),
        Column("kind", _any_of(*CheckKind)),
        _text("url", 2048),
        _text("host", 253),
        _text("challenge", 64),
        _instant("created_at"),
        _instant("expires_at", ""),
        _maybe("outcome", _any_of(*CheckOutcome)),
        _text("error_code", 100, null=True),
        _maybe("duration_ms", "int"),
        _instant("finished_at", null=True),
    ),
    indexes=(
        _index("idx_endpoint_check_subscription", "subscription_id", "created_at"),
        _index("idx_endpoint_check_host", "host", "created_at"),
    ),
    checks=("endpoint_check_kind_known", "endpoint_check_outcome_known"),
)

RETENTION_WALKS = Table(
    "retention_walks",
    (_text("name", 20), _instant("at_time", null=True), Column("at_id", "bigint", "0"), _instant("began_at")),
    key=("name",),
)

RETENTION_TOTALS = Table(
    "retention_totals",
    (_text("day", 10), *(Column(name, "bigint", "0") for name in COUNTED), _instant("updated_at")),
    key=("day",),
)

API_KEYS = Table(
    "api_keys",
    (
        _id(),
        _text("public_id", 40),
        Column("key_hash", "bytes"),
        _text("name", 200, "''"),
        _text("scopes", 200),
        _text("event_domain", 100, null=True),
        _text("created_by", 200, "''"),
        _instant("created_at"),
        _instant("last_used_at", null=True),
        _instant("expires_at", null=True),
        _instant("revoked_at", null=True),
    ),
    indexes=(_unique("uniq_api_key_public_id", "public_id"),),
)

CONSOLE_SESSIONS = Table(
    "console_sessions",
    (_text("session_hash", 64), _text("public_id", 40), _instant("created_at"), _instant("seen_at")),
    key=("session_hash",),
    indexes=(_index("idx_console_session_seen", "seen_at"),),
)

DELIVERY_TOTALS = Table(
    "delivery_totals",
    (
        Column("subscription_id", "bigint"),
        Column("place", "int"),
        Column("slot", "int"),
        _instant("began_at", ""),
        *(Column(name, "bigint", "0") for name in (*OUTCOMES, *DURATIONS)),
    ),
    key=("subscription_id", "place", "slot"),
    indexes=(
        _index("idx_delivery_total_of", "subscription_id", "began_at"),
        _index("idx_delivery_total_began", "began_at"),
    ),
)

AUDIT_LOG = Table(
    "audit_log",
    (
        _id(),
        _text("actor", 200),
        _text("action", 100),
        _text("subject", 300),
        _maybe("detail", "json"),
        _text("request_id", 128, null=True),
        _instant("created_at"),
        _text("address", 64, null=True),
    ),
    indexes=(_index("idx_audit_created", "created_at"), _index("idx_audit_subject", "subject")),
    guards=_guards("audit_changed audit_removed audit_truncated", "audit_changed audit_removed"),
)

CONFIG_VERSION = Table(
    "config_version",
    (Column("id", "small", "1"), Column("version", "bigint", "1"), _instant("updated_at")),
    checks=("config_version_is_one_row",),
)

INSTALLATION = Table(
    "installation",
    (Column("id", "small", "1"), _text("installation_id", 36, "uuid"), _instant("created_at")),
    checks=("installation_is_one_row",),
)

SCHEMA_MIGRATIONS = Table(
    "schema_migrations",
    (Column("version", "int"), _text("step", 100), _instant("applied_at")),
    key=("version", "step"),
)

_NEVER_TRUNCATED = {
    "events": "event_id",
    "sagas": "saga_id",
    "jobs": "job_id",
    "dead_letters": "dead_letter_id",
    "route_attempts": "route_attempt_id",
    "route_dead_letters": "route_dead_letter_id",
    "audit_log": "audit_id",
}
# MySQL fires no trigger on TRUNCATE: foreign keys of this ever-empty table refuse it instead.
TRUNCATE_GUARD = Table(
    "truncate_guard",
    (Column("id", "bigint"), *(_maybe(column, "bigint") for column in _NEVER_TRUNCATED.values())),
    indexes=tuple(_index(f"truncate_guard_{table}", column) for table, column in _NEVER_TRUNCATED.items()),
    checks=("truncate_guard_is_empty",),
    mysql_only=True,
)

TABLES = (
    EVENTS,
    EVENT_WRITERS,
    SUBSCRIPTIONS,
    ROUTES,
    GATES,
    ROUTE_WORKER_CURSORS,
    ROUTE_HOLES,
    ROUTE_ATTEMPTS,
    ROUTE_DEAD_LETTERS,
    SAGAS,
    JOBS,
    DELIVERY_LANES,
    DEAD_LETTERS,
    TASKS,
    TASKS_HISTORY,
    WORKER_PRESENCE,
    MASS_REQUEUES,
    ENDPOINT_CHECKS,
    RETENTION_WALKS,
    RETENTION_TOTALS,
    API_KEYS,
    CONSOLE_SESSIONS,
    DELIVERY_TOTALS,
    AUDIT_LOG,
    CONFIG_VERSION,
    INSTALLATION,
    SCHEMA_MIGRATIONS,
    TRUNCATE_GUARD,
)

ROUTINES = (
    "requeue_dead_letters",
    "resend_sagas",
    "last_event_number",
    "add_subscription_secret",
    "mark_present",
    "mark_gone",
    "archive_finished_tasks",
)


def tables_of(family: str) -> dict[str, Table]:
    """The tables that exist on this family of engines, by name."""
    return {table.name: table for table in TABLES if family == "mysql" or not table.mysql_only}


def columns_of(table: Table, family: str) -> tuple[Column, ...]:
    return tuple(column for column in table.columns if family == "mysql" or not column.mysql_only)
