"""Each role, by its own login, tries to get more than it was given. Nothing works, and nothing changes.

An attempt of `REFUSED` must be refused for want of a right, one of `HARMLESS` may succeed; after either the role can do
no more than the map says, in the same session.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncmy
import pytest
from asyncmy.errors import MySQLError

from tests.db.test_rights import difference
from tests.db.test_rights_matrix import DENIALS, Cell, allowed_by_the_map, attempts, is_denied
from tests.support.database import Database
from tidings.db.accounts import ALL_ROLES
from tidings.db.session import Session
from tidings.db.statements import Statement
from tidings.errors import StatementFailed
from tidings.flow import OWNER, ROLE_NAMES

pytestmark = pytest.mark.slow

REFUSED = {
    "postgresql": """
        SET ROLE {owner}
        SET ROLE {owner_login}
        SET ROLE postgres
        SET SESSION AUTHORIZATION {owner_login}
        SET SESSION AUTHORIZATION postgres
        SET session_replication_role = replica
        ALTER ROLE {other_login} PASSWORD 'known'
        ALTER ROLE {other} LOGIN
        ALTER ROLE {login} SUPERUSER
        ALTER ROLE {login} CREATEROLE
        ALTER ROLE {login} BYPASSRLS
        ALTER ROLE {other_login} SET search_path = pg_temp
        ALTER DATABASE postgres SET session_replication_role = replica
        ALTER SYSTEM SET port = 1
        CREATE ROLE tried IN ROLE {owner}
        GRANT {owner} TO {login}
        GRANT {other} TO {login}
        CREATE FUNCTION {schema}.tried() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'
        CREATE OR REPLACE FUNCTION {schema}.is_retention() RETURNS boolean LANGUAGE sql AS 'SELECT true'
        ALTER FUNCTION {schema}.requeue_dead_letters(bigint[]) RESET ALL
        DROP FUNCTION {schema}.refuse() CASCADE
        CREATE SCHEMA tried
        ALTER TABLE webhook_delivery_sagas DISABLE TRIGGER ALL
        ALTER TABLE events DISABLE TRIGGER event_changed
        ALTER TABLE events OWNER TO {login}
        DROP TRIGGER saga_terminal ON webhook_delivery_sagas
        CREATE RULE tried AS ON INSERT TO audit_log DO INSTEAD NOTHING
        CREATE POLICY tried ON events
        CREATE TEMPORARY TABLE tried () INHERITS (events)
        CREATE EVENT TRIGGER tried ON ddl_command_end EXECUTE FUNCTION {schema}.refuse()
        CREATE PUBLICATION tried FOR TABLE events
        REASSIGN OWNED BY {owner} TO {login}
        DROP OWNED BY {owner}
        COPY (SELECT 1) TO PROGRAM 'true'
        COPY (SELECT 1) TO '/tmp/tried'
        CREATE TEMPORARY TABLE tried AS SELECT pg_read_file('/etc/passwd')
        CREATE TEMPORARY TABLE tried AS SELECT lo_import('/etc/passwd')
        SELECT rolpassword FROM pg_authid
        SELECT passwd FROM pg_shadow
        SELECT stavalues1 FROM pg_statistic
    """,
    "mysql": """
        SET ROLE `{owner}`
        SET ROLE `{other}`
        SET DEFAULT ROLE `{owner}`
        SET DEFAULT ROLE `{other}` FOR `{login}`@`%`
        SET PASSWORD FOR `{other_login}`@`%` = PASSWORD('known')
        ALTER USER `{other_login}`@`%` IDENTIFIED BY 'known'
        ALTER USER `{definer}`@`localhost` ACCOUNT UNLOCK
        CREATE USER tried
        GRANT `{owner}` TO `{login}`@`%`
        GRANT `{other}` TO `{login}`@`%`
        GRANT ALL PRIVILEGES ON `{schema}`.* TO `{login}`@`%`
        GRANT FILE ON *.* TO `{login}`@`%`
        CREATE PROCEDURE tried() SQL SECURITY DEFINER TRUNCATE events
        CREATE DEFINER = `{definer}`@`localhost` PROCEDURE tried() SQL SECURITY DEFINER TRUNCATE events
        CREATE DEFINER = `root`@`127.0.0.1` FUNCTION tried() RETURNS int RETURN 1
        CREATE DEFINER = `{definer}`@`localhost` TRIGGER tried BEFORE INSERT ON audit_log FOR EACH ROW SET @tried = 1
        CREATE DEFINER = `root`@`127.0.0.1` VIEW tried AS SELECT * FROM events
        CREATE EVENT tried ON SCHEDULE EVERY 1 DAY DO SET @tried = 1
        ALTER PROCEDURE requeue_dead_letters SQL SECURITY INVOKER
        DROP PROCEDURE requeue_dead_letters
        DROP TRIGGER saga_terminal
        SET GLOBAL event_scheduler = 1
        SET GLOBAL check_constraint_checks = 0
        SET SESSION sql_log_bin = 0
        SELECT 1 INTO OUTFILE '/tmp/tried'
        LOAD DATA INFILE '/etc/passwd' INTO TABLE audit_log (actor)
        SELECT authentication_string FROM mysql.user
        SELECT Priv FROM mysql.global_priv
        SELECT * FROM mysql.tables_priv
        CREATE FUNCTION tried RETURNS STRING SONAME 'tried.so'
        INSTALL SONAME 'tried'
        CREATE TEMPORARY TABLE webhook_delivery_sagas (id int)
        CREATE TEMPORARY TABLE next_generation (id int)
        CREATE TABLE tried LIKE events
        RENAME TABLE events TO tried
        LOCK TABLES events WRITE
        FLUSH TABLES
        SHUTDOWN
        CREATE DATABASE tried
    """,
}
HARMLESS = {
    "postgresql": """
        SET ROLE {group}
        SET ROLE NONE
        RESET ROLE
        RESET SESSION AUTHORIZATION
        SET row_security = off
        SET search_path = pg_temp, pg_catalog, {schema}
        GRANT CREATE ON SCHEMA {schema} TO {login}
        GRANT ALL ON installation, audit_log TO {login}
        GRANT {group} TO {login}
        ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC
        CREATE TEMPORARY TABLE webhook_delivery_sagas (LIKE {schema}.installation)
        CREATE FUNCTION pg_temp.is_retention() RETURNS boolean LANGUAGE sql SECURITY DEFINER AS 'SELECT true'
        DO $$ BEGIN EXECUTE 'SET LOCAL search_path = pg_temp'; END $$
    """,
    "mysql": """
        SET ROLE `{group}`
        SET ROLE NONE
        SET FOREIGN_KEY_CHECKS = 0
        SET SESSION check_constraint_checks = 0
        SET SESSION sql_mode = ''
        SET @tried = LOAD_FILE('/etc/passwd')
    """,
}
# Besides the codes of a denied attempt: a role that can't be taken on, an account, a file.
REFUSALS = {"postgresql": DENIALS["postgresql"], "mysql": {*DENIALS["mysql"], "1045", "1698", "1959", "1372"}}

PROBED = (
    *(
        Cell(verb, table)
        for verb in ("DELETE", "TRUNCATE")
        for table in ("events", "webhook_delivery_sagas", "audit_log")
    ),
    *(Cell(verb, "webhook_delivery_sagas", "status") for verb in ("SELECT", "INSERT", "UPDATE")),
    *(Cell(verb, "webhook_delivery_jobs", "lease_until") for verb in ("INSERT", "UPDATE")),
    *(Cell(verb, "subscriptions", "secrets") for verb in ("SELECT", "UPDATE")),
    Cell("UPDATE", "subscriptions", "verified"),
    Cell("SELECT", "api_keys", "key_hash"),
    Cell("UPDATE", "audit_log", "actor"),
    Cell("ALTER", "events"),
    Cell("EXECUTE", "requeue_dead_letters"),
    Cell("CREATE TABLE"),
)
GLANCED_AT = tuple(
    cell for cell in PROBED if cell.verb in ("TRUNCATE", "EXECUTE", "CREATE TABLE") or cell.column == "secrets"
)


def texts(listed: str, engine: Database, role: str) -> list[str]:
    names = engine.names
    other = "saga_orchestrator" if role != "saga_orchestrator" else "retention"
    words = {
        "schema": names.schema,
        "group": names.group(role),
        "login": names.login(role),
        "other": names.group(other),
        "other_login": names.login(other),
        "owner": names.group(OWNER),
        "owner_login": names.login(OWNER),
        "definer": names.definer,
    }
    return [line.strip().format(**words) for line in listed.strip().splitlines()]


@asynccontextmanager
async def fresh(engine: Database, role: str) -> AsyncIterator[Session]:
    """A session of this role that nobody has used before."""
    login = await engine.open(role)
    async with login.bare_session() as session:
        yield session
    await engine.close()


async def gained(session: Session, engine: Database, role: str, probed: tuple[Cell, ...] = PROBED) -> list[str]:
    """Which of the probed cells the session can do against the map."""
    tried = attempts(engine.family, engine.names.schema, engine.names.login(role))
    over = [cell for cell in probed if cell not in allowed_by_the_map(role, engine.family)]
    return [str(cell) for cell in over if not await is_denied(session, tried[cell], engine.family)]


async def code_of(session: Session, text: str) -> str:
    """The server's code for its refusal; empty if it did as told."""
    try:
        await session.command(text)
    except StatementFailed as error:
        return error.code
    return ""


@pytest.mark.parametrize("role", ROLE_NAMES)
async def test_no_escape_gains_anything(engine: Database, role: str) -> None:
    wrong = []
    async with fresh(engine, role) as session:
        for text in texts(REFUSED[engine.family], engine, role):
            code = await code_of(session, text)
            if code not in REFUSALS[engine.family]:
                wrong.append(f"{text}: answered {code or 'with success'}")
            wrong += [f"after {text}: {cell}" for cell in await gained(session, engine, role, GLANCED_AT)]
        wrong += [f"after all of these: {cell}" for cell in await gained(session, engine, role)]
    for text in texts(HARMLESS[engine.family], engine, role):
        async with fresh(engine, role) as session:
            await code_of(session, text)
            wrong += [f"after {text}: {cell}" for cell in await gained(session, engine, role)]
    assert wrong == [], "\n" + "\n".join(wrong)
    assert await difference(engine) == ([], [])


@pytest.mark.parametrize("role", ROLE_NAMES)
async def test_no_role_can_become_another(engine: Database, role: str) -> None:
    async with fresh(engine, role) as session:
        for other in {engine.names.group(one) for one in ALL_ROLES if one != role}:
            assert await code_of(session, f"SET ROLE {other}") in REFUSALS[engine.family], other
        assert await gained(session, engine, role) == []
        await session.command("SET ROLE NONE")
        assert await gained(session, engine, role) == []


def test_the_probes_can_tell() -> None:
    """Every role is denied most of what is probed, so that a gain would show."""
    for family in ("postgresql", "mysql"):
        for role in ROLE_NAMES:
            assert len(set(PROBED) - allowed_by_the_map(role, family)) >= 10


# --- Secrets, by any other way than SELECT ---------------------------------------------------------------------------

SECRET = "seen-by-nobody"
READING = {
    "postgresql": """
        SELECT * FROM subscriptions
        TABLE subscriptions
        SELECT s FROM subscriptions s
        SELECT row_to_json(s) FROM subscriptions s
        SELECT count(secrets) FROM subscriptions
        SELECT id FROM subscriptions ORDER BY secrets
        SELECT id FROM subscriptions WHERE secrets > 'a'
        SELECT a.id FROM subscriptions a NATURAL JOIN subscriptions b
        UPDATE subscriptions SET description = encode(secrets, 'escape')
        UPDATE subscriptions SET description = 'hit' WHERE secrets > 'a'
        UPDATE subscriptions SET paused = true RETURNING secrets
        UPDATE subscriptions SET max_in_flight = 0
        UPDATE subscriptions SET secrets = secrets || 'x'
        CREATE TEMPORARY VIEW leak AS SELECT * FROM subscriptions
        EXPLAIN (ANALYZE, VERBOSE) SELECT secrets FROM subscriptions
        SELECT histogram_bounds::text, most_common_vals::text FROM pg_stats WHERE attname = 'secrets'
    """,
    "mysql": """
        SELECT * FROM subscriptions
        SELECT COUNT(secrets) FROM subscriptions
        SELECT id FROM subscriptions ORDER BY secrets
        SELECT id FROM subscriptions WHERE secrets > 'a'
        SELECT a.id FROM subscriptions a NATURAL JOIN subscriptions b
        SELECT id FROM subscriptions PROCEDURE ANALYSE()
        UPDATE subscriptions SET description = secrets
        UPDATE subscriptions SET description = 'hit' WHERE secrets > 'a'
        UPDATE subscriptions SET description = 'hit' ORDER BY secrets
        UPDATE subscriptions SET secrets = CONCAT(secrets, 'x')
        INSERT INTO subscriptions (event_type, callback_url, description) SELECT 'a', 'b', secrets FROM subscriptions
        INSERT INTO subscriptions (event_type, callback_url) VALUES (1, 2) ON DUPLICATE KEY UPDATE description = secrets
        INSERT INTO audit_log (actor, action, subject) SELECT secrets, 'a', 'b' FROM subscriptions
        CHECKSUM TABLE subscriptions
        ANALYZE FORMAT=JSON SELECT secrets FROM subscriptions
        EXPLAIN EXTENDED SELECT secrets FROM subscriptions WHERE id = 1
        SHOW WARNINGS
        UPDATE subscriptions SET max_in_flight = 0
        SHOW WARNINGS
        SELECT * FROM information_schema.column_statistics
    """,
}


@pytest.mark.parametrize("role", sorted(set(ROLE_NAMES) - {"job_worker", "subscription_verifier"}))
async def test_a_secret_can_be_had_by_no_way_around(engine: Database, role: str) -> None:
    """Secrets are readable by `job_worker` and `subscription_verifier` only."""
    await engine.sql(
        "INSERT INTO subscriptions (event_type, callback_url, secrets, headers)"
        f" VALUES ('a', 'https://a', '{SECRET}', '{SECRET}')",
        role="admin",
    )
    if engine.family == "postgresql":
        await engine.sql("ANALYZE subscriptions", role="admin")
    heard = []
    async with fresh(engine, role) as session:
        for text in texts(READING[engine.family], engine, role):
            try:
                rows = await session.fetch(Statement("test.read", text, ()), {})
                heard.append(f"{text}: {[tuple(row.values()) for row in rows]}")
            except StatementFailed as error:
                heard.append(f"{text}: {error}")
    assert [line for line in heard if SECRET in line or SECRET.encode().hex() in line.lower()] == []
    readable = "SELECT CONCAT(description, callback_url, event_type) AS told FROM subscriptions"
    assert not any(SECRET in row["told"] or "hit" in row["told"] for row in await engine.sql(readable, role="observer"))
    assert await engine.value(f"SELECT COUNT(*) FROM audit_log WHERE actor = '{SECRET}'", role="observer") == 0


@pytest.mark.one_engine("mariadb", reason="only there is HANDLER")
@pytest.mark.xfail(
    raises=AssertionError, reason="HANDLER of MariaDB (10.11) shows whole rows to whoever may SELECT any one column"
)
@pytest.mark.parametrize("table", ["subscriptions", "api_keys"])
async def test_handler_shows_no_column_that_was_not_granted(engine: Database, table: str) -> None:
    async with fresh(engine, "observer") as session:
        assert await code_of(session, f"HANDLER {table} OPEN") in DENIALS["mysql"]


# --- Tables of the same name -----------------------------------------------------------------------------------------


@pytest.mark.one_engine("postgresql", reason="on MariaDB no role can make a temporary table: see REFUSED")
async def test_a_temporary_table_does_not_stand_in_for_ours_in_a_requeue(engine: Database) -> None:
    async with fresh(engine, "dead_letter_operator") as session:
        for table in ("dead_letters", "webhook_delivery_sagas"):
            await session.command(f"CREATE TEMPORARY TABLE {table} AS TABLE {table} WITH NO DATA")
        await session.command("CREATE TEMPORARY TABLE subscriptions (id bigint, active boolean, verified boolean)")
        await session.command("INSERT INTO pg_temp.dead_letters (id, saga_id) VALUES (7, 8)")
        await session.command(
            "INSERT INTO pg_temp.webhook_delivery_sagas (id, event_id, subscription_id, generation, status)"
            " VALUES (8, 1, 1, 0, 'DeadLettered')"
        )
        await session.command("INSERT INTO pg_temp.subscriptions VALUES (1, true, true)")
        for path in ("pg_temp, {0}", "{0}, pg_temp", "{0}"):
            await session.command(f"SET search_path = {path.format(engine.names.schema)}")
            asked = Statement("test.requeue", "SELECT outcome FROM requeue_dead_letters('{{7}}')", ())
            assert [row["outcome"] for row in await session.fetch(asked, {})] == ["not_found"]
    assert await engine.value("SELECT count(*) FROM webhook_delivery_sagas", role="observer") == 0


@pytest.mark.one_engine("postgresql", reason="on MariaDB no role can make a temporary table: see REFUSED")
async def test_a_temporary_table_does_not_stand_in_for_ours_in_a_guard(engine: Database) -> None:
    await engine.sql(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status)"
        " VALUES (1, 1, 'c', 'Completed')",
        role="admin",
    )
    saga = await engine.value("SELECT id FROM webhook_delivery_sagas", role="observer")
    for path in ("pg_temp, {0}", "{0}"):
        async with fresh(engine, "saga_orchestrator") as session:
            await session.command("CREATE TEMPORARY TABLE webhook_delivery_sagas (id bigint, status text)")
            await session.command("CREATE TEMPORARY TABLE new_jobs (saga_id bigint)")
            await session.command(f"SET search_path = {path.format(engine.names.schema)}")
            columns, values = "saga_id, subscription_id, attempt_at, attempt_no", f"{saga}, 1, now(), 1"
            job = f"INSERT INTO webhook_delivery_jobs ({columns}) VALUES ({values})"
            assert await code_of(session, job) == "23001"


async def test_retention_cannot_hide_what_is_unfinished_from_the_guard(engine: Database) -> None:
    """An event with an open saga stays, whatever the session calls its tables."""
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')", role="admin")
    event = await engine.value("SELECT id FROM events", role="observer")
    await engine.sql(
        f"INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id) VALUES ({event}, 1, 'c')",
        role="admin",
    )
    await engine.sql(
        "INSERT INTO route_attempts (event_id, worker_name, idempotency_key, status)"
        f" VALUES ({event}, 'w', 'k', 'sent')",
        role="admin",
    )
    async with fresh(engine, "retention") as session:
        await code_of(session, "CREATE TEMPORARY TABLE webhook_delivery_sagas (event_id bigint)")
        for table in ("events", "webhook_delivery_sagas"):
            # 23001: restrict_violation, 1644: SIGNAL
            assert await code_of(session, f"DELETE FROM {engine.names.schema}.{table}") in ("23001", "1644")
    assert await engine.value("SELECT COUNT(*) FROM events", role="observer") == 1


@pytest.mark.one_engine("mariadb", reason="PostgreSQL needs no account to run a routine with its owner's rights")
async def test_nobody_can_log_in_as_the_definer(engine: Database) -> None:
    """It has no password, so its lock is all that keeps it; it must hold where the account would otherwise match."""
    ways = ({"unix_socket": str(engine.server.directory / "socket")}, {"host": "127.0.0.1", "port": engine.server.port})
    for way in ways:
        with pytest.raises(MySQLError) as refusal:
            await asyncmy.connect(user=engine.names.definer, password="", **way)
        assert refusal.value.args[0] in (1045, 4151)
    locked = await engine.value(
        f"SELECT JSON_VALUE(Priv, '$.account_locked') FROM mysql.global_priv WHERE User = '{engine.names.definer}'",
        role="admin",
    )
    assert locked == "1"
