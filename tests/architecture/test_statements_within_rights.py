"""No statement of a role touches what the map does not give to it: read here, and asked of the real servers."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import tidings.roles
from tests.architecture.sql_reader import COLUMNS, Reader, Unreadable
from tests.support.database import Database
from tidings.db.dialect import DIALECTS, MARIADB, POSTGRESQL, Dialect
from tidings.db.mysql_literals import literal_text
from tidings.db.postgresql import numbered_text
from tidings.db.statements import Statement, compile_statement, load_statements
from tidings.errors import StatementFailed
from tidings.flow import EXECUTE, ROLES, SELECT

# package = database user
ROLE_OF = {
    "ingest": "event_ingest_writer",
    "subscriptions": "subscription_admin",
    "verifier": "subscription_verifier",
    "routes": "route_admin",
    "keys": "key_admin",
    "key_checker": "key_checker",
    "sessions": "session_keeper",
    "router": "event_router",
    "orchestrator": "saga_orchestrator",
    "worker": "job_worker",
    "cleaner": "lease_cleaner",
    "dead_letters": "dead_letter_operator",
    "tasks": "dead_letter_operator",
    "task_producer": "task_producer",
    "task_worker": "task_worker",
    "rescuer": "task_rescuer",
    "archiver": "task_archiver",
    "retention": "retention",
    "observer": "observer",
}


def packages() -> list[str]:
    """The role packages that have statements."""
    (folder,) = tidings.roles.__path__
    return sorted(path.parent.name for path in Path(folder).glob("*/operations.sql"))


# --- Comparing -------------------------------------------------------------------------------------------------------


def granted(role: str, verb: str, table: str) -> frozenset[str]:
    """The columns on which the role has the verb."""
    (found,) = [one for one in ROLES if one.name == role]
    return frozenset(
        column
        for permission in found.may
        if (permission.verb, permission.table) == (verb, table)
        for column in (permission.columns or COLUMNS.get(table, frozenset({""})))
        if column not in permission.but
    )


def beyond_the_map(role: str, text: str) -> list[str]:
    """What the statement does that the map does not say; Unreadable if that can't be told."""
    touched = Reader(text).read()
    wrong = []
    for verb, table, column in sorted(touched.rights):
        columns = granted(role, verb, table)
        # A list of columns may name id where the database draws it: writing all of them never means that one.
        wanted = COLUMNS[table] - {"id"} if column == "*" else {column}
        if not columns or (column and not wanted <= columns):
            wrong.append(f"{verb} {table}{'.' + column if column else ''}")
    for table in sorted({table for verb, table, _ in touched.rights if verb != EXECUTE}):
        readable = granted(role, SELECT, table)
        hidden = COLUMNS[table] - readable if readable else frozenset()
        wrong += [f"SELECT {table}.{name}" for name in sorted(hidden & touched.read_names)]
        wrong += [f"SELECT {table}.*"] if hidden and table in touched.star_over else []
    return wrong


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=[*DIALECTS])
def test_no_statement_touches_what_the_map_does_not_give_to_its_role(dialect: Dialect) -> None:
    """Rights are data: what the map gives is held against the text of each statement."""
    strangers = [package for package in packages() if package not in ROLE_OF]
    assert strangers == [], "say in ROLE_OF whose statements these are"
    wrong = []
    for package in packages():
        for statement in load_statements(f"tidings.roles.{package}", dialect).values():
            try:
                wrong += [f"{statement.name}: {what}" for what in beyond_the_map(ROLE_OF[package], whole(statement))]
            except Unreadable as error:
                wrong.append(f"{statement.name} can't be read: {error}")
    assert wrong == [], "\n" + "\n".join(wrong)


def whole(statement: Statement) -> str:
    """Its text, with what is repeated for each row written once."""
    for number, parameter in enumerate(statement.parameters):
        if parameter.endswith(".each"):
            return statement.text.replace(f"{{{number}}}", f"SELECT * FROM ({statement.each}) x")
    return statement.text


async def test_the_server_lets_each_role_run_each_of_its_statements(engine: Database) -> None:
    """Ring 3: the login. EXPLAIN looks at the rights and runs nothing."""
    wrong = []
    for package in packages():
        wrong += await refused(engine, ROLE_OF[package], explained(package, DIALECTS[engine.kind]))
    assert wrong == [], "\n" + "\n".join(wrong)


async def refused(engine: Database, role: str, texts: dict[str, str]) -> list[str]:
    login = await engine.open(role)
    said = []
    async with login.bare_session() as session:
        for name, text in texts.items():
            try:
                await session.command(text)
            except StatementFailed as error:
                said.append(f"{name} as {role}: {error.what}")
    return said


def explained(package: str, dialect: Dialect) -> dict[str, str]:
    """Every statement of the package as an EXPLAIN with arguments that mean nothing."""
    statements = load_statements(f"tidings.roles.{package}", dialect)
    widths = batch_widths(load_statements(f"tidings.roles.{package}", POSTGRESQL))
    return {
        statement.name: explain_text(statement, dialect, widths.get(name, {}))
        for name, statement in statements.items()
        # There is no EXPLAIN for these; ring 2 has read them.
        if not re.match(r"/\*.*?\*/\s*(CALL|SET)\b", statement.text)
    }


def explain_text(statement: Statement, dialect: Dialect, widths: dict[str, int]) -> str:
    if dialect.family == "postgresql":
        return f"EXPLAIN (GENERIC_PLAN) {numbered_text(statement)}"
    batches = {parameter.split(".")[0] for parameter in statement.parameters if "." in parameter}
    arguments = {name: [(1,) * widths[name]] if name in batches else 1 for name in statement.arguments}
    return f"EXPLAIN {literal_text(statement, arguments)}"


def batch_widths(statements: Mapping[str, Statement]) -> dict[str, dict[str, int]]:
    """How many columns each batch has: on PostgreSQL each is a parameter of its own."""
    widths: dict[str, dict[str, int]] = {}
    for name, statement in statements.items():
        for parameter in statement.parameters:
            if "." in parameter:
                batch = parameter.split(".")[0]
                widths.setdefault(name, {})[batch] = widths.get(name, {}).get(batch, 0) + 1
    return widths


# --- The reader itself, on statements that were planted --------------------------------------------------------------

WITHIN = {
    "event_ingest_writer": """INSERT INTO events (event_type, payload) {rows events(event_type text, payload json)}
        ON CONFLICT (event_domain, external_id) WHERE external_id IS NOT NULL DO NOTHING RETURNING id""",
    "saga_orchestrator": """WITH due AS (SELECT s.id FROM webhook_delivery_sagas s JOIN subscriptions b
        ON b.id = s.subscription_id WHERE s.status = 'Pending' AND b.active FOR UPDATE OF s SKIP LOCKED)
        UPDATE webhook_delivery_sagas w SET status = 'InProgress', updated_at = {now} FROM due WHERE w.id = due.id""",
    "job_worker": """UPDATE webhook_delivery_jobs SET status = 'Leased', lease_until = {now + :seconds},
        lease_token = lease_token + 1 WHERE id {in :ids} AND attempt_at IS DISTINCT FROM {now} RETURNING id, saga_id""",
    "subscription_admin": "UPDATE subscriptions SET secrets = :secrets, updated_at = {now} WHERE id = :id",
    "observer": """SELECT e.*, (SELECT count(*) FROM webhook_delivery_sagas x WHERE x.event_id = e.id) AS sagas,
        extract(epoch FROM e.created_at) FROM events e, installation i ORDER BY e.id LIMIT :limit""",
    "dead_letter_operator": "SELECT * FROM requeue_dead_letters(:ids)",
    "route_admin": """INSERT INTO gates (name, is_open) VALUES (:name, true)
        ON CONFLICT (name) DO UPDATE SET is_open = excluded.is_open, changed_at = {now}""",
    "task_worker": "SELECT id FROM sys_pending_tasks WHERE status IN (0, 3) LIMIT :n FOR UPDATE SKIP LOCKED",
    "task_archiver": """WITH gone AS (DELETE FROM sys_pending_tasks WHERE id {in :ids} RETURNING id, biz_type, biz_key)
        INSERT INTO sys_pending_tasks_history (id, biz_type, biz_key) SELECT id, biz_type, biz_key FROM gone""",
    "key_checker": "SELECT id, key_hash, scopes FROM api_keys WHERE public_id = :public_id",
}
BEYOND = [
    (
        "job_worker",
        "UPDATE webhook_delivery_sagas SET status = 'Completed' WHERE id = :id",
        "UPDATE webhook_delivery_sagas.status",
    ),
    (
        "job_worker",
        "UPDATE webhook_delivery_jobs SET status = 'Failed', applied_at = {now}",
        "UPDATE webhook_delivery_jobs.applied_at",
    ),
    (
        "job_worker",
        "UPDATE webhook_delivery_jobs SET (status, applied_at) = ('Failed', {now})",
        "UPDATE webhook_delivery_jobs.applied_at",
    ),
    ("job_worker", "INSERT INTO dead_letters (saga_id) VALUES (1)", "INSERT dead_letters.saga_id"),
    (
        "saga_orchestrator",
        "INSERT INTO webhook_delivery_jobs (saga_id, lease_until) VALUES (:s, {now})",
        "INSERT webhook_delivery_jobs.lease_until",
    ),
    (
        "saga_orchestrator",
        "INSERT INTO webhook_delivery_jobs SELECT * FROM webhook_delivery_jobs",
        "INSERT webhook_delivery_jobs.*",
    ),
    (
        "event_router",
        "SELECT e.id FROM events e WHERE EXISTS (SELECT 1 FROM webhook_delivery_jobs j WHERE j.id = e.id)",
        "SELECT webhook_delivery_jobs",
    ),
    ("event_router", "SELECT e.id FROM events e, dead_letters d", "SELECT dead_letters"),
    (
        "event_router",
        "SELECT e.id FROM events e LEFT JOIN tidings.dead_letters d ON d.event_id = e.id",
        "SELECT dead_letters",
    ),
    (
        "event_router",
        "WITH x AS (UPDATE webhook_delivery_sagas SET status = 'Pending' RETURNING id) SELECT id FROM x",
        "UPDATE webhook_delivery_sagas.status",
    ),
    ("event_router", "SELECT id FROM events FOR UPDATE", "UPDATE events"),
    ("event_router", "DELETE FROM route_attempts WHERE id = 1", "DELETE route_attempts"),
    (
        "event_router",
        "INSERT INTO route_attempts (status) VALUES ('sent') ON CONFLICT (id) DO UPDATE SET status = 'sent'",
        "UPDATE route_attempts.status",
    ),
    (
        "event_router",
        "INSERT INTO route_attempts (status) VALUES ('sent') ON DUPLICATE KEY UPDATE status = 'sent'",
        "UPDATE route_attempts.status",
    ),
    ("event_router", "CALL requeue_dead_letters(:ids)", "EXECUTE requeue_dead_letters"),
    ("event_router", "SELECT n.outcome FROM events, resend_sagas(:ids) n", "EXECUTE resend_sagas"),
    ("dead_letter_operator", "SELECT * FROM start_next_generation(:ids, 'Completed')", "EXECUTE start_next_generation"),
    ("observer", "SELECT id, secrets FROM subscriptions", "SELECT subscriptions.secrets"),
    ("observer", "SELECT id FROM subscriptions s WHERE s.headers IS NOT NULL", "SELECT subscriptions.headers"),
    ("observer", "SELECT * FROM subscriptions", "SELECT subscriptions.*"),
    ("observer", "SELECT s.* FROM events e JOIN subscriptions s ON true", "SELECT subscriptions.*"),
    (
        "subscription_admin",
        "UPDATE subscriptions SET description = secrets WHERE id = :id",
        "SELECT subscriptions.secrets",
    ),
    (
        "subscription_admin",
        "UPDATE subscriptions SET paused = true RETURNING id, secrets",
        "SELECT subscriptions.secrets",
    ),
    (
        "task_worker",
        "UPDATE sys_pending_tasks t JOIN subscriptions s ON s.id = t.id SET t.status = 1, s.active = 0",
        "UPDATE subscriptions.active",
    ),
    ("task_worker", "UPDATE sys_pending_tasks SET status = 1 FROM subscriptions WHERE true", "SELECT subscriptions"),
    ("task_archiver", "DELETE FROM sys_pending_tasks USING events WHERE true", "SELECT events"),
]
UNREADABLE = [
    "TRUNCATE events",
    "SELECT 1; DELETE FROM events",
    "SELECT id FROM somebody_elses_table",
    "MERGE INTO gates USING events ON true WHEN MATCHED THEN DELETE",
    "REPLACE INTO gates (name) VALUES ('a')",
    "WITH x AS (TRUNCATE events) SELECT 1",
    "DELETE e FROM events e JOIN gates g ON true",
    "UPDATE pg_temp.stray SET a = 1",
    "SELECT (1",
    "GRANT SELECT ON events TO observer",
    "COPY events TO STDOUT",
    "SELECT $1",
    "",
]


@pytest.mark.parametrize("role", WITHIN)
def test_a_statement_within_the_map_is_let_through(role: str) -> None:
    assert beyond_the_map(role, compile_statement("planted", WITHIN[role], POSTGRESQL).text) == []


@pytest.mark.parametrize(("role", "text", "caught"), BEYOND)
def test_a_planted_statement_beyond_the_map_is_caught(role: str, text: str, caught: str) -> None:
    for dialect in (POSTGRESQL, MARIADB):
        assert caught in beyond_the_map(role, compile_statement("planted", text, dialect).text)


@pytest.mark.parametrize("text", UNREADABLE)
def test_a_statement_that_is_not_understood_is_no_statement_within_rights(text: str) -> None:
    with pytest.raises(Unreadable):
        beyond_the_map("retention", compile_statement("planted", text, MARIADB).text)


async def test_the_server_refuses_planted_statements_and_lets_the_others_through(engine: Database) -> None:
    dialect = DIALECTS[engine.kind]

    def explain(text: str) -> str:
        statement = compile_statement("planted", text, dialect)
        width = {"events": 2} if "rows events" in text else {}
        return explain_text(statement, dialect, width)

    # But the one with SET (…), which MariaDB can't read.
    for role, text, _ in [*BEYOND[:2], *BEYOND[3:5]]:
        (said,) = await refused(engine, role, {"planted": explain(text)})
        assert "denied" in said
    for role in ("job_worker", "subscription_admin", "key_checker", "task_worker"):
        within = WITHIN[role].replace("IS DISTINCT FROM", "<>").replace(" RETURNING id, saga_id", "")
        assert await refused(engine, role, {"planted": explain(within)}) == []
