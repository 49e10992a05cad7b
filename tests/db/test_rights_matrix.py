"""The whole matrix role × table × verb, tried on the real servers through each role's own login.

The attempt decides, not the catalogue: a refusal for want of a right is a denial, anything else is permission. What is
expected stands here twice: expanded from the map, and read anew from the seeds and the rulings.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.support.database import Database
from tidings.db.session import Session
from tidings.errors import StatementFailed, TransientFailure
from tidings.flow import DELETE, EXECUTE, INSERT, ROLE_NAMES, ROLES, Permission
from tidings.tables import columns_of, tables_of

pytestmark = pytest.mark.slow

DENIALS = {
    "postgresql": {"42501"},
    # database, table, column, server-wide privilege, routine
    "mysql": {"1044", "1142", "1143", "1227", "1370"},
}
FAMILIES = tuple(DENIALS)

# Every routine that a person could call; trigger functions can't be.
ROUTINES = {
    "postgresql": {
        "requeue_dead_letters": "SELECT {schema}.requeue_dead_letters('{{}}')",
        "resend_sagas": "SELECT {schema}.resend_sagas('{{}}')",
        "start_next_generation": "SELECT {schema}.start_next_generation('{{}}', 'Completed')",
        "last_event_number": "SELECT {schema}.last_event_number()",
        "add_subscription_secret": "SELECT {schema}.add_subscription_secret(0, '')",
        "mark_present": "SELECT {schema}.mark_present('w', 'p', 'h', 1, 'v')",
        "mark_gone": "SELECT {schema}.mark_gone('w')",
        "archive_finished_tasks": "SELECT {schema}.archive_finished_tasks('{{}}')",
    },
    "mysql": {
        "requeue_dead_letters": "CALL {schema}.requeue_dead_letters('[]')",
        "resend_sagas": "CALL {schema}.resend_sagas('[]')",
        "start_next_generation": "CALL {schema}.start_next_generation('[]', 'Completed')",
        "last_event_number": "CALL {schema}.last_event_number()",
        "add_subscription_secret": "CALL {schema}.add_subscription_secret(0, '')",
        "mark_present": "CALL {schema}.mark_present('w', 'p', 'h', 1, 'v')",
        "mark_gone": "CALL {schema}.mark_gone('w')",
        "archive_finished_tasks": "CALL {schema}.archive_finished_tasks('[]')",
    },
}
TABLE_VERBS = {
    "postgresql": {
        "DELETE": "DELETE FROM {table} WHERE false",
        "TRUNCATE": "TRUNCATE {table}",
        "DROP": "DROP TABLE {table} CASCADE",
        "ALTER": "ALTER TABLE {table} ADD COLUMN tried int",
        "INDEX": "CREATE INDEX tried ON {table} ((1))",
        "TRIGGER": "CREATE TRIGGER tried AFTER INSERT ON {table} EXECUTE FUNCTION {schema}.refuse('tried')",
    },
    "mysql": {
        "DELETE": "DELETE FROM {table} WHERE false",
        "TRUNCATE": "TRUNCATE {table}",
        "DROP": "DROP TABLE {table}",
        "ALTER": "ALTER TABLE {table} COMMENT = 'tried'",
        "INDEX": "DROP INDEX tried ON {table}",
        "TRIGGER": "CREATE TRIGGER {schema}.tried AFTER INSERT ON {table} FOR EACH ROW SET @tried = 1",
    },
}
SCHEMA_VERBS = {
    "postgresql": {
        "CREATE TABLE": "CREATE TABLE {schema}.tried (id int)",
        "CREATE VIEW": "CREATE VIEW {schema}.tried AS SELECT 1 AS id",
        "CREATE ROUTINE": "CREATE FUNCTION {schema}.tried() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE SCHEMA": "CREATE SCHEMA tried",
        "ALTER SCHEMA": "COMMENT ON SCHEMA {schema} IS 'tried'",
        "CREATE ACCOUNT": "CREATE ROLE tried",
    },
    "mysql": {
        "CREATE TABLE": "CREATE TABLE {schema}.gates (id int)",
        "CREATE VIEW": "CREATE VIEW {schema}.gates AS SELECT 1 AS id",
        "CREATE ROUTINE": "CREATE PROCEDURE {schema}.resend_sagas() SELECT 1",
        "CREATE SCHEMA": "CREATE DATABASE {schema}",
        "ALTER SCHEMA": "ALTER DATABASE {schema} CHARACTER SET utf8mb4",
        "CREATE ACCOUNT": "CREATE USER {login}",
    },
}
COLUMN_VERBS = {
    "postgresql": {
        "SELECT": "SELECT {column} FROM {table} LIMIT 0",
        "INSERT": "INSERT INTO {table} ({column}) OVERRIDING SYSTEM VALUE SELECT NULL WHERE false",
        "UPDATE": "UPDATE {table} SET {column} = DEFAULT WHERE false",
    },
    "mysql": {
        "SELECT": "SELECT {column} FROM {table} LIMIT 0",
        "INSERT": "INSERT INTO {table} ({column}) SELECT NULL FROM DUAL WHERE false",
        "UPDATE": "UPDATE {table} SET {column} = NULL WHERE false",
    },
}


@dataclass(frozen=True, order=True)
class Cell:
    """One verb on one column, table, routine or on the schema."""

    verb: str
    subject: str = ""
    column: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.subject}{'.' + self.column if self.column else ''}".strip()


def attempts(family: str, schema: str, login: str) -> dict[Cell, str]:
    """What is tried for each cell. Nothing of it writes a row, whether it is allowed or not."""
    texts: dict[Cell, str] = {Cell(verb): text for verb, text in SCHEMA_VERBS[family].items()}
    texts |= {Cell(EXECUTE, name): text for name, text in ROUTINES[family].items()}
    for name, table in tables_of(family).items():
        texts |= {Cell(verb, name): text for verb, text in TABLE_VERBS[family].items()}
        for column in columns_of(table, family):
            texts |= {Cell(verb, name, column.name): text for verb, text in COLUMN_VERBS[family].items()}
    return {
        cell: text.format(schema=schema, login=login, table=f"{schema}.{cell.subject}", column=cell.column)
        for cell, text in texts.items()
    }


def cells(family: str) -> frozenset[Cell]:
    return frozenset(attempts(family, "s", "l"))


def allowed_by_the_map(role: str, family: str) -> frozenset[Cell]:
    """The map, expanded to single cells."""
    (found,) = [one for one in ROLES if one.name == role]
    return frozenset(cell for permission in found.may for cell in _expanded(permission, family))


def _expanded(permission: Permission, family: str) -> Iterator[Cell]:
    table = tables_of(family).get(permission.table)
    if permission.verb == EXECUTE or (permission.verb == DELETE and table):
        yield Cell(permission.verb, permission.table)
    elif table:
        for column in columns_of(table, family):
            # The one place where an engine can't keep the map: see rights.permitted_columns.
            whole = family == "mysql" and permission.verb == INSERT and permission.but == ("id",)
            if column.name in (permission.columns or [column.name]) and (whole or column.name not in permission.but):
                yield Cell(permission.verb, permission.table, column.name)


async def is_denied(session: Session, text: str, family: str) -> bool:
    """Runs the text; whatever comes back other than a refusal for want of a right counts as permission."""
    try:
        await session.command(text)
    except StatementFailed as error:
        return error.code in DENIALS[family]
    except TransientFailure:
        return False
    return False


async def found_allowed(engine: Database, role: str) -> frozenset[Cell]:
    """Every cell whose attempt was not denied."""
    login = await engine.open(role)
    tried = attempts(engine.family, engine.names.schema, engine.names.login(role))
    async with _harmless(engine), login.bare_session() as session:
        if engine.family == "mysql":
            await session.command("SET SESSION lock_wait_timeout = 0")
        allowed = set()
        for cell, text in tried.items():
            undone = engine.family == "postgresql" and cell.verb not in COLUMN_VERBS[engine.family]
            if undone:
                await session.command("BEGIN")
            if not await is_denied(session, text, engine.family):
                allowed.add(cell)
            if undone:
                await session.command("ROLLBACK")
        return frozenset(allowed)


@asynccontextmanager
async def _harmless(engine: Database) -> AsyncIterator[None]:
    """DDL of MariaDB commits; while somebody reads every table, one that is allowed runs into a lock instead."""
    if engine.family == "postgresql":
        yield
        return
    admin = await engine.open("admin")
    async with admin.transaction() as reader:
        for table in tables_of(engine.family):
            await reader.command(f"SELECT * FROM {table} LIMIT 0")
        yield


# --- The second reading ----------------------------------------------------------------------------------------------

EVERYBODY = frozenset(ROLE_NAMES)
SAGAS, JOBS = "webhook_delivery_sagas", "webhook_delivery_jobs"
TASKS, HISTORY = "sys_pending_tasks", "sys_pending_tasks_history"
BOOKS = "retention_walks retention_totals"
WRITES = "INSERT UPDATE DELETE"
ANYTHING = f"SELECT {WRITES}"
LEASE = "lease_until worker_id lease_token lease_resets"
RESULT = "status response_status error_code retry_after response_excerpt duration_ms finished_at"


@dataclass(frozen=True)
class Rule:
    """One sentence of the specification. Empty `tables` or `columns` stand for all of them."""

    says: str
    roles: frozenset[str]
    verbs: str
    tables: str = ""
    columns: str = ""
    not_tables: str = ""
    not_columns: str = ""

    def speaks_of(self, cell: Cell) -> bool:
        return (
            cell.verb in self.verbs.split()
            and (not self.tables or cell.subject in self.tables.split())
            and (not self.columns or cell.column in self.columns.split())
            and cell.subject not in self.not_tables.split()
            and cell.column not in self.not_columns.split()
        )


def only(*roles: str) -> frozenset[str]:
    return frozenset(roles)


def all_but(*roles: str) -> frozenset[str]:
    return EVERYBODY - set(roles)


WORKER, ORCHESTRATOR, OPERATOR = only("job_worker"), only("saga_orchestrator"), only("dead_letter_operator")
ROUTER, INGEST, CLEANER = only("event_router"), only("event_ingest_writer"), only("lease_cleaner")

FORBIDDEN = (
    Rule("r02 §4.1: the worker inserts no saga, deletes none", WORKER, WRITES, SAGAS),
    Rule("r02 §4.1: the worker does not write to dead_letters", WORKER, WRITES, "dead_letters"),
    Rule("§3: the worker updates jobs and nothing else", WORKER, "UPDATE", not_tables=JOBS),
    Rule("§3: lease and result columns, not others", WORKER, "UPDATE", JOBS, not_columns=f"{LEASE} {RESULT}"),
    Rule("r02 §2: the worker creates no job", WORKER, "INSERT DELETE", not_tables="audit_log"),
    Rule("ruling 7: expiries are counted by the cleaner", WORKER, "UPDATE", JOBS, "lease_resets"),
    Rule("r01, r02 §4.2: the orchestrator deletes nothing", ORCHESTRATOR, "DELETE"),
    Rule("r01: the orchestrator modifies no event, no subscription", ORCHESTRATOR, WRITES, "events subscriptions"),
    Rule("§3: the orchestrator inserts no saga", ORCHESTRATOR, "INSERT", SAGAS),
    Rule("§3: the orchestrator touches no lease column", ORCHESTRATOR, "INSERT UPDATE", JOBS, LEASE),
    Rule("§3: of a job it updates applied_at only", ORCHESTRATOR, "UPDATE", JOBS, not_columns="applied_at"),
    Rule("§3: dead letters never change", ORCHESTRATOR, "UPDATE DELETE", "dead_letters"),
    Rule("r02 §4.3: the operator changes no saga, §3: inserts none", OPERATOR, WRITES, SAGAS),
    Rule("r02 §4.3: the operator changes no event", OPERATOR, WRITES, "events"),
    Rule("phase 7: old jobs are never reused", OPERATOR, WRITES, f"{JOBS} dead_letters subscriptions"),
    Rule("phase 2: ingest does not touch these", INGEST, ANYTHING, f"{SAGAS} {JOBS} dead_letters"),
    Rule("phase 2: ingest inserts events only", INGEST, WRITES, not_tables="events"),
    Rule("phase 2: the payload is immutable", INGEST, "UPDATE DELETE", "events"),
    Rule(
        "phase 3: subscriptions are pure configuration", only("subscription_admin"), ANYTHING, f"events {SAGAS} {JOBS}"
    ),
    Rule(
        "§4: verified is not set by hand",
        all_but("subscription_verifier"),
        "INSERT UPDATE",
        "subscriptions",
        "verified",
    ),
    Rule("§4: a changed URL waits", all_but("subscription_verifier"), "UPDATE", "subscriptions", "callback_url"),
    Rule("§3: the router updates no saga", ROUTER, "UPDATE DELETE", SAGAS),
    Rule("§4: the router creates no job", ROUTER, ANYTHING, f"{JOBS} dead_letters"),
    Rule("§4: the router changes no event, no subscription", ROUTER, WRITES, "events subscriptions"),
    Rule("§4: the router does not open its own gate", ROUTER, WRITES, "gates routes"),
    Rule("§4: the cleaner never touches sagas", CLEANER, ANYTHING, f"{SAGAS} events subscriptions dead_letters"),
    Rule("§3: secrets", all_but("job_worker", "subscription_verifier"), "SELECT", "subscriptions", "secrets headers"),
    Rule("§3: keys are compared by the checker alone", all_but("key_checker"), "SELECT", "api_keys", "key_hash"),
    Rule("§3: users' handlers", only("task_worker"), ANYTHING, "subscriptions"),
    Rule(
        "§3: tasks are worlds apart from sagas",
        only("task_worker"),
        ANYTHING,
        not_tables=f"{TASKS} audit_log installation config_version schema_migrations",
    ),
    Rule("§3: nobody changes the audit log", EVERYBODY, "UPDATE DELETE", "audit_log"),
    Rule("§2: events never change", EVERYBODY, "UPDATE", "events dead_letters route_attempts"),
    Rule(
        "ruling 17: only retention",
        all_but("retention"),
        "DELETE",
        f"events {SAGAS} {JOBS} dead_letters route_attempts route_dead_letters {HISTORY}",
    ),
    Rule("ruling 17: retention writes its own books", only("retention"), "INSERT", not_tables=f"audit_log {BOOKS}"),
    Rule("ruling 17: it changes nothing", only("retention"), "UPDATE", not_tables=f"{BOOKS} route_worker_cursors"),
    Rule("§4: of a cursor it locks", only("retention"), "UPDATE", "route_worker_cursors", not_columns="updated_at"),
    Rule("ruling 17: nobody else writes them", all_but("retention"), WRITES, BOOKS),
    Rule("§4: challenges are the verifier's", all_but("subscription_verifier"), WRITES, "endpoint_checks"),
    Rule("§4: and nobody's to read", all_but("subscription_verifier"), "SELECT", "endpoint_checks", "challenge"),
    Rule("ruling 11: subscriptions are never deleted", EVERYBODY, "DELETE", "subscriptions"),
    Rule("seed 003: only the archiver takes tasks out", all_but("task_archiver"), "DELETE", TASKS),
    Rule("ruling 13: to replace is the producer's", all_but("task_producer"), "EXECUTE", "archive_finished_tasks"),
    Rule("seed 003: history is history", EVERYBODY, "UPDATE", HISTORY),
    Rule("§4: the orchestrator alone changes sagas", all_but("saga_orchestrator"), "UPDATE", SAGAS),
    Rule("§4: and creates jobs", all_but("saga_orchestrator"), "INSERT", JOBS),
    Rule("§4: and buries", all_but("saga_orchestrator"), "INSERT", "dead_letters"),
    Rule("§3: sagas are made by the router", all_but("event_router"), "INSERT", SAGAS),
    Rule("§3: leases", all_but("job_worker", "lease_cleaner"), "INSERT UPDATE", JOBS, LEASE),
    Rule("§3: applied_at", all_but("saga_orchestrator"), "INSERT UPDATE", JOBS, "applied_at"),
    Rule("§3: route_admin owns routes and gates", all_but("route_admin"), WRITES, "routes gates"),
    Rule("§3: key_admin makes keys", all_but("key_admin"), "INSERT DELETE", "api_keys"),
    Rule("§2: ids are drawn by the database", EVERYBODY, "UPDATE", columns="id"),
    Rule("ruling 18: the installation's identity stays", EVERYBODY, WRITES, "installation schema_migrations"),
    Rule("§3: the observer changes nothing", only("observer"), f"{WRITES} EXECUTE"),
    Rule("§2: presence is told, not written", EVERYBODY, WRITES, "worker_presence"),
    Rule(
        "§3: requeue is the operator's", all_but("dead_letter_operator"), "EXECUTE", "requeue_dead_letters resend_sagas"
    ),
    Rule("§3: secrets are the admin's to add", all_but("subscription_admin"), "EXECUTE", "add_subscription_secret"),
    Rule("§4: routers watch the counter", all_but("event_router", "route_admin"), "EXECUTE", "last_event_number"),
    Rule("§4: configuration is counted by the database", EVERYBODY, "UPDATE", "config_version"),
    Rule("§3: through its two doors only", EVERYBODY, "EXECUTE", "start_next_generation"),
    Rule("§2: no role holds DROP", EVERYBODY, "TRUNCATE DROP ALTER INDEX TRIGGER"),
    Rule("§2: the guard is nobody's", EVERYBODY, f"{ANYTHING} TRUNCATE DROP", "truncate_guard"),
)
NO_DDL = frozenset(map(Cell, SCHEMA_VERBS["postgresql"]))

REQUIRED = (
    Rule("r02 §4.1", WORKER, "SELECT", f"{JOBS} {SAGAS} events subscriptions"),
    Rule("§3", WORKER, "UPDATE", JOBS, f"lease_until worker_id lease_token {RESULT}"),
    Rule("r02 §4.2", ORCHESTRATOR, "SELECT", f"{SAGAS} {JOBS} events dead_letters"),
    Rule("r02 §4.2", ORCHESTRATOR, "SELECT", "subscriptions", not_columns="secrets headers"),
    Rule("r01", ORCHESTRATOR, "UPDATE", SAGAS, "status attempt_count next_attempt_at final_error_code updated_at"),
    Rule("r01", ORCHESTRATOR, "INSERT", JOBS, "saga_id subscription_id attempt_at attempt_no"),
    Rule("§3", ORCHESTRATOR, "UPDATE", JOBS, "applied_at"),
    Rule("§3", ORCHESTRATOR, "INSERT", "dead_letters"),
    Rule("§3", ROUTER, "SELECT INSERT", SAGAS),
    Rule("phase 4", ROUTER, "SELECT", "subscriptions", "event_type active verified"),
    Rule("r02 §4.3", OPERATOR, "SELECT", "dead_letters"),
    Rule("§3", OPERATOR, "EXECUTE", "requeue_dead_letters resend_sagas"),
    Rule("phase 2", INGEST, "INSERT", "events", not_columns="id"),
    Rule("§4", CLEANER, "UPDATE", JOBS, f"status {LEASE}"),
    Rule("ruling 17", only("retention"), "DELETE", f"events route_attempts {SAGAS} {JOBS} dead_letters"),
    Rule("seed 003", only("task_archiver"), "DELETE", TASKS),
    Rule("seed 003", only("task_archiver"), "INSERT", HISTORY),
    Rule("§3", all_but("event_ingest_writer", "key_checker", "observer"), "INSERT", "audit_log"),
)


def against_the_specification(role: str, family: str, allowed: frozenset[Cell]) -> list[str]:
    forbidden = [
        f"{role} may {cell}, against {rule.says!r}"
        for rule in FORBIDDEN
        if role in rule.roles
        for cell in sorted(allowed)
        if rule.speaks_of(cell)
    ]
    required = [
        f"{role} may not {cell}, which {rule.says} asks for"
        for rule in REQUIRED
        if role in rule.roles
        for cell in sorted(cells(family) - allowed)
        if rule.speaks_of(cell)
    ]
    return forbidden + required + [f"{role} may {cell}" for cell in sorted(NO_DDL & allowed)]


def test_every_rule_speaks_of_something_that_exists() -> None:
    silent = [rule.says for rule in (*FORBIDDEN, *REQUIRED) if not any(map(rule.speaks_of, cells("mysql")))]
    assert silent == []


def test_the_same_is_tried_on_both_engines() -> None:
    for tried in (ROUTINES, TABLE_VERBS, SCHEMA_VERBS, COLUMN_VERBS):
        assert set(tried["mysql"]) == set(tried["postgresql"])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("role", ROLE_NAMES)
def test_the_map_keeps_the_specification(role: str, family: str) -> None:
    """r01 Permissions, r02 §4, phases 2 and 8, and the rulings; a fault found here needs no server to be found."""
    assert against_the_specification(role, family, allowed_by_the_map(role, family)) == []


@pytest.mark.parametrize("role", ROLE_NAMES)
async def test_a_role_can_do_what_the_map_says_and_nothing_else(engine: Database, role: str) -> None:
    """Phase 8: "each component only has the minimal allowed operations"."""
    allowed = await found_allowed(engine, role)
    expected = allowed_by_the_map(role, engine.family)
    wrong = [f"{role} may {cell}, which the map does not say" for cell in sorted(allowed - expected)]
    wrong += [f"{role} may not {cell}, which the map says" for cell in sorted(expected - allowed)]
    wrong += against_the_specification(role, engine.family, allowed)
    assert wrong == [], "\n" + "\n".join(wrong)


async def test_the_attempts_are_sound_and_leave_no_trace(engine: Database) -> None:
    """The owner must look allowed everywhere: an attempt that asks for more than its own right would prove nothing."""
    before = await engine.schema_lines()
    refused = cells(engine.family) - await found_allowed(engine, "schema_owner")
    assert refused <= {Cell("CREATE SCHEMA"), Cell("CREATE ACCOUNT")}
    assert await engine.schema_lines() == before
