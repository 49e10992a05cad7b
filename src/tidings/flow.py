"""THE MAP: every role, what it reads, what it writes. Nobody has a right that does not stand here.

From it come the grants of both engines, the check that no role's statement touches anything else, `tidings flow`, and
docs/reference/flow.md. A new right is added here first, then the statement, then the code.
"""

from dataclasses import dataclass

SELECT, INSERT, UPDATE, DELETE, EXECUTE = VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE")
_WRITING = {INSERT: "adds", UPDATE: "changes", DELETE: "removes", EXECUTE: "calls"}


@dataclass(frozen=True)
class Permission:
    """One verb on one table: on all columns, on `columns` only, or on all `but` some."""

    verb: str
    table: str
    columns: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def __str__(self) -> str:
        kept = f" ({', '.join(self.columns)})" if self.columns else ""
        left_out = f" (not {', '.join(self.but)})" if self.but else ""
        return f"{self.table}{kept}{left_out}"


@dataclass(frozen=True)
class Role:
    """`process` is its name for `tidings run`; roles without one act when somebody asks."""

    name: str
    does: str
    may: tuple[Permission, ...]
    process: str = ""

    def reads(self) -> list[str]:
        """In words, without what is `COMMON`."""
        return [str(one) for one in self.may if one.verb == SELECT and one not in COMMON]

    def writes(self) -> list[str]:
        return [f"{_WRITING[one.verb]} {one}" for one in self.may if one.verb in _WRITING and one not in COMMON]


def _read(*tables: str) -> tuple[Permission, ...]:
    return tuple(Permission(SELECT, table) for table in tables)


def _read_but(table: str, *secret: str) -> tuple[Permission, ...]:
    return (Permission(SELECT, table, but=secret),)


def _insert(*tables: str) -> tuple[Permission, ...]:
    return tuple(Permission(INSERT, table) for table in tables)


def _insert_columns(table: str, *columns: str) -> tuple[Permission, ...]:
    return (Permission(INSERT, table, columns=columns),)


def _insert_but(table: str, *columns: str) -> tuple[Permission, ...]:
    return (Permission(INSERT, table, but=columns),)


def _update(table: str, *columns: str) -> tuple[Permission, ...]:
    return (Permission(UPDATE, table, columns=columns),)


def _delete(*tables: str) -> tuple[Permission, ...]:
    return tuple(Permission(DELETE, table) for table in tables)


def _call(*routines: str) -> tuple[Permission, ...]:
    return tuple(Permission(EXECUTE, routine) for routine in routines)


# Every process looks at these before it starts.
_KNOWS_WHERE_IT_IS = _read("installation", "config_version", "schema_migrations")
_AUDITED = _insert("audit_log")
# Said once of all roles, not of each.
COMMON = {*_KNOWS_WHERE_IT_IS, *_AUDITED}
_PRESENT = _call("mark_present", "mark_gone")
_SUBSCRIPTIONS_WITHOUT_SECRETS = _read_but("subscriptions", "secrets", "headers")
_CURSOR_PLACE = ("position", "last_event_id", "last_event_correlation_id", "last_event_created_at", "updated_at")
_TASK_OUTCOME = ("status", "version", "retry_count", "next_run_time", "result_msg", "updated_at")

ROLES = (
    Role(
        "event_ingest_writer",
        "appends events to the log and does nothing else",
        _KNOWS_WHERE_IT_IS
        + _read("events")
        # Whoever could choose an id could hide an event from the routers' holes.
        + _insert_but("events", "id"),
    ),
    Role(
        "subscription_admin",
        "configures who gets which events; can neither read secrets nor call an endpoint verified",
        _KNOWS_WHERE_IT_IS
        + _SUBSCRIPTIONS_WITHOUT_SECRETS
        + _insert_but("subscriptions", "id", "verified")
        + _update(
            "subscriptions",
            "event_domain",
            "event_type",
            "pending_callback_url",
            "active",
            "verification",
            "paused",
            "description",
            "secrets",
            "headers",
            "max_retry_limit",
            "base_delay_seconds",
            "timeout_seconds",
            "max_in_flight",
            "config_version",
            "updated_at",
        )
        + _call("add_subscription_secret")
        + _AUDITED,
    ),
    Role(
        "subscription_verifier",
        "calls an endpoint and, if it answers rightly, puts its URL in force",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("subscriptions", "sys_pending_tasks")
        + _update(
            "subscriptions",
            "callback_url",
            "pending_callback_url",
            "verified",
            "verification",
            "secrets",
            "config_version",
            "updated_at",
        )
        # A challenge and the task that carries it are made in one transaction. So the admin stays pure configuration.
        + _read("endpoint_checks")
        + _insert_but("endpoint_checks", "id")
        + _update("endpoint_checks", "outcome", "error_code", "duration_ms", "finished_at")
        + _delete("endpoint_checks")
        + _insert_columns("sys_pending_tasks", "biz_type", "biz_key", "payload", "max_retries")
        + _update("sys_pending_tasks", *_TASK_OUTCOME, "worker_id")
        + _AUDITED,
        process="verifier",
    ),
    Role(
        "route_admin",
        "writes routes, opens and closes gates, gives routers their commands",
        _KNOWS_WHERE_IT_IS
        + _read("events", "routes", "gates", "route_worker_cursors", "route_holes", "route_dead_letters")
        + _insert("routes", "gates", "route_worker_cursors", "route_holes")
        + _update(
            "routes",
            "event_domain",
            "event_type",
            "event_stream",
            "target",
            "task_biz_type",
            "enabled",
            "dry_run",
            "updated_at",
        )
        + _update("gates", "is_open", "reason", "changed_by", "changed_at")
        + _update("route_worker_cursors", "event_domain", *_CURSOR_PLACE)
        + _delete("routes", "route_holes")
        + _call("last_event_number")
        + _AUDITED,
    ),
    Role(
        "key_admin",
        "makes and revokes API keys",
        _KNOWS_WHERE_IT_IS
        + _read_but("api_keys", "key_hash")
        + _insert_but("api_keys", "id")
        + _update("api_keys", "name", "expires_at", "revoked_at")
        + _AUDITED,
    ),
    Role(
        "key_checker",
        "tells whose key a request carries, and records what a key was refused",
        _KNOWS_WHERE_IT_IS + _read("api_keys") + _update("api_keys", "last_used_at") + _AUDITED,
    ),
    Role(
        "session_keeper",
        "tells who is signed in to the console, as long as the key they came with is valid",
        _KNOWS_WHERE_IT_IS
        + _read_but("api_keys", "key_hash")
        + _read("console_sessions")
        + _insert("console_sessions")
        + _update("console_sessions", "seen_at")
        + _delete("console_sessions")
        + _AUDITED,
    ),
    Role(
        "event_router",
        "turns events into sagas and tasks, once each, and records why",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("events", "event_writers", "routes", "gates", "webhook_delivery_sagas", "sys_pending_tasks")
        + _read("route_worker_cursors", "route_holes", "route_attempts", "route_dead_letters")
        # A task that was archived is not made a second time.
        + _read("sys_pending_tasks_history")
        + _SUBSCRIPTIONS_WITHOUT_SECRETS
        + _insert("webhook_delivery_sagas", "sys_pending_tasks", "route_worker_cursors", "route_holes")
        + _insert("route_attempts", "route_dead_letters")
        + _update(
            "route_worker_cursors",
            *_CURSOR_PLACE,
            "runs",
            "sent_count",
            "dry_run_count",
            "disabled_count",
            "skipped_count",
            "failed_count",
            "last_run_summary",
        )
        + _update("route_dead_letters", "resolved_at", "resolution")
        + _delete("route_holes", "event_writers")
        + _call("last_event_number")
        + _AUDITED,
        process="router",
    ),
    Role(
        "saga_orchestrator",
        "alone moves sagas, creates their jobs and buries what is exhausted",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("events", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters")
        + _SUBSCRIPTIONS_WITHOUT_SECRETS
        + _update(
            "webhook_delivery_sagas",
            "status",
            "attempt_count",
            "next_attempt_at",
            "final_error_code",
            "updated_at",
        )
        # No lease column: those belong to worker and cleaner.
        + _insert_columns("webhook_delivery_jobs", "saga_id", "subscription_id", "status", "attempt_at", "attempt_no")
        + _update("webhook_delivery_jobs", "applied_at")
        + _insert("dead_letters")
        + _read("delivery_lanes")
        + _insert("delivery_lanes")
        + _update("delivery_lanes", "window_size", "failures", "last_failure_at", "last_error_code", "updated_at")
        + _read("delivery_totals")
        + _insert("delivery_totals")
        # All of it: MariaDB wants the right on each column that ON DUPLICATE KEY UPDATE might have to write.
        + _update("delivery_totals")
        + _AUDITED,
        process="orchestrator",
    ),
    Role(
        "job_worker",
        "leases jobs, sends them, reports what came back; decides nothing",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("events", "subscriptions", "webhook_delivery_sagas", "webhook_delivery_jobs")
        + _update(
            "webhook_delivery_jobs",
            "status",
            "lease_until",
            "worker_id",
            "lease_token",
            "response_status",
            "error_code",
            "retry_after",
            "response_excerpt",
            "duration_ms",
            "finished_at",
        )
        + _AUDITED,
        process="worker",
    ),
    Role(
        "lease_cleaner",
        "alone ends stale leases",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("webhook_delivery_jobs")
        + _update(
            "webhook_delivery_jobs",
            "status",
            "lease_until",
            "worker_id",
            "lease_token",
            "lease_resets",
            "error_code",
            "finished_at",
        )
        + _AUDITED,
        process="cleaner",
    ),
    Role(
        "dead_letter_operator",
        "gives dead letters and completed sagas a next generation, through one routine; retries and cancels tasks",
        _KNOWS_WHERE_IT_IS
        + _read("events", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters")
        + _SUBSCRIPTIONS_WITHOUT_SECRETS
        + _call("requeue_dead_letters", "resend_sagas")
        + _read("mass_requeues")
        + _insert_but("mass_requeues", "id")
        + _update(
            "mass_requeues",
            "status",
            "position",
            "started_count",
            "already_count",
            "refused_count",
            "updated_at",
            "finished_at",
        )
        + _read("sys_pending_tasks", "sys_pending_tasks_history")
        + _insert_but("sys_pending_tasks", "id")
        + _update("sys_pending_tasks", *_TASK_OUTCOME)
        + _AUDITED,
    ),
    Role(
        "task_producer",
        "submits tasks, in the place of finished ones if asked to",
        _KNOWS_WHERE_IT_IS
        + _read("sys_pending_tasks")
        + _insert_but("sys_pending_tasks", "id")
        + _call("archive_finished_tasks")
        + _AUDITED,
    ),
    Role(
        "task_worker",
        "claims tasks by their version, runs handlers, stores the outcome",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("sys_pending_tasks")
        + _update("sys_pending_tasks", *_TASK_OUTCOME, "worker_id")
        + _AUDITED,
        process="task-worker",
    ),
    Role(
        "task_rescuer",
        "takes tasks back from workers that went silent",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("sys_pending_tasks")
        + _update("sys_pending_tasks", *_TASK_OUTCOME)
        + _AUDITED,
        process="rescuer",
    ),
    Role(
        "task_archiver",
        "moves finished tasks to the history",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("sys_pending_tasks", "sys_pending_tasks_history")
        + _insert("sys_pending_tasks_history")
        + _delete("sys_pending_tasks")
        # A locking read needs some UPDATE right on PostgreSQL.
        + _update("sys_pending_tasks", "updated_at")
        + _AUDITED,
        process="archiver",
    ),
    Role(
        "retention",
        "removes whole finished stories, where somebody asked for it",
        _KNOWS_WHERE_IT_IS
        + _PRESENT
        + _read("events", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters")
        + _read("route_attempts", "route_dead_letters", "sys_pending_tasks", "sys_pending_tasks_history")
        + _delete("events", "webhook_delivery_sagas", "webhook_delivery_jobs", "dead_letters")
        + _delete("route_attempts", "route_dead_letters", "sys_pending_tasks_history")
        + _read("route_worker_cursors", "route_holes", "retention_walks", "retention_totals")
        # A locking read needs some UPDATE right on PostgreSQL: no router goes back while stories are removed.
        + _update("route_worker_cursors", "updated_at")
        + _insert("retention_walks", "retention_totals")
        + _update("retention_walks", "at_time", "at_id", "began_at")
        # All of it, as for the totals of deliveries.
        + _update("retention_totals")
        + _AUDITED,
        process="retention",
    ),
    Role(
        "observer",
        "reads everything but secrets, and changes nothing",
        _KNOWS_WHERE_IT_IS
        + _read("events", "event_writers", "routes", "gates", "webhook_delivery_sagas", "webhook_delivery_jobs")
        + _read("dead_letters", "route_worker_cursors", "route_holes", "route_attempts", "route_dead_letters")
        + _read("sys_pending_tasks", "sys_pending_tasks_history", "audit_log", "worker_presence", "mass_requeues")
        + _read("retention_walks", "retention_totals", "delivery_lanes", "delivery_totals")
        + _read_but("console_sessions", "session_hash")
        + _read_but("endpoint_checks", "challenge")
        + _SUBSCRIPTIONS_WITHOUT_SECRETS
        + _read_but("api_keys", "key_hash"),
    ),
)

OWNER = "schema_owner"

ROLE_NAMES = tuple(role.name for role in ROLES)
