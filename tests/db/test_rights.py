"""What the map asks for is what the servers have granted, and `migrate` puts right what somebody changed by hand."""

from collections.abc import AsyncIterator

import pytest

from tests.support.database import Database
from tests.support.servers import MariaDBServer
from tidings.db.accounts import ALL_ROLES
from tidings.db.names import Names
from tidings.db.rights import wanted_rights
from tidings.errors import StatementDenied
from tidings.flow import EXECUTE, ROLE_NAMES, ROLES, VERBS
from tidings.tables import ROUTINES, TABLES, tables_of

pytestmark = pytest.mark.slow

EXPECTED_ROLES = (
    "event_ingest_writer subscription_admin subscription_verifier route_admin key_admin key_checker event_router"
    " saga_orchestrator job_worker lease_cleaner dead_letter_operator task_producer task_worker task_rescuer"
    " task_archiver retention observer session_keeper"
)


def test_the_map_has_every_role_and_no_other() -> None:
    """`schema_owner` migrates and runs nothing, so it is no role of the map."""
    assert sorted(ROLE_NAMES) == sorted(EXPECTED_ROLES.split())
    assert set(ALL_ROLES) - set(ROLE_NAMES) == {"schema_owner"}


def test_the_map_names_only_what_exists() -> None:
    columns = {table.name: {column.name for column in table.columns} for table in TABLES}
    strangers = [
        f"{role.name}: {permission.verb} {permission}"
        for role in ROLES
        for permission in role.may
        if permission.verb not in VERBS
        or (permission.verb == EXECUTE and permission.table not in ROUTINES)
        or (permission.verb != EXECUTE and permission.table not in columns)
        or not {*permission.columns, *permission.but} <= columns.get(permission.table, set())
        or (permission.columns and permission.but)
    ]
    assert strangers == []


def test_the_map_says_nothing_twice() -> None:
    said = [(role.name, permission.verb, permission.table) for role in ROLES for permission in role.may]
    assert sorted(said) == sorted(set(said))


async def difference(engine: Database) -> tuple[list[str], list[str]]:
    """What the groups have too much, and what they lack."""
    has = await engine.granted_rights()
    wanted = wanted_rights(engine.names, engine.family)
    return sorted(map(str, has - wanted)), sorted(map(str, wanted - has))


@pytest.fixture
async def damaged(engine: Database) -> AsyncIterator[Database]:
    """May be damaged: the next test finds it mended."""
    yield engine
    await engine.migrate()
    assert await difference(engine) == ([], [])


async def test_what_is_granted_is_what_the_map_asks_for(engine: Database) -> None:
    assert await difference(engine) == ([], [])


async def test_migrating_again_changes_nothing(engine: Database) -> None:
    before = await everything_about_accounts(engine)
    assert await engine.migrate() == []
    assert await everything_about_accounts(engine) == before
    assert await difference(engine) == ([], [])


async def everything_about_accounts(engine: Database) -> list[object]:
    if engine.family == "postgresql":
        texts = [
            "SELECT rolname, rolsuper, rolcanlogin, rolpassword FROM pg_authid ORDER BY oid",
            "SELECT roleid, member, admin_option, inherit_option, set_option FROM pg_auth_members ORDER BY 1, 2",
            "SELECT setrole, setdatabase, setconfig FROM pg_db_role_setting ORDER BY 1, 2",
            "SELECT relname, relowner, relacl::text FROM pg_class ORDER BY oid",
            "SELECT attrelid, attnum, attacl::text FROM pg_attribute WHERE attacl IS NOT NULL ORDER BY 1, 2",
            "SELECT proname, proowner, proacl::text, prosecdef FROM pg_proc ORDER BY oid",
            "SELECT nspname, nspowner, nspacl::text FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY oid",
        ]
    else:
        tables = ("global_priv", "db", "roles_mapping", "procs_priv")
        texts = [f"SELECT * FROM mysql.{table} ORDER BY 1, 2, 3" for table in tables]
        texts.append("SELECT db, user, table_name, table_priv, column_priv FROM mysql.tables_priv ORDER BY 1, 2, 3")
        texts.append(
            "SELECT db, user, table_name, column_name, column_priv FROM mysql.columns_priv ORDER BY 1, 2, 3, 4"
        )
    return [[tuple(row.values()) for row in await engine.sql(text, role="admin")] for text in texts]


SAGAS, JOBS = "webhook_delivery_sagas", "webhook_delivery_jobs"
WIDENED = {
    f"UPDATE ON {{schema}}.{SAGAS} TO event_router": f"UPDATE on {SAGAS} for event_router",
    # These have the verb on some columns; taking it back from the whole table must leave them those.
    f"UPDATE ON {{schema}}.{JOBS} TO job_worker": f"UPDATE on {JOBS} for job_worker",
    f"INSERT ON {{schema}}.{JOBS} TO saga_orchestrator": f"INSERT on {JOBS} for saga_orchestrator",
    "SELECT ON {schema}.subscriptions TO observer": "SELECT on subscriptions for observer",
    "SELECT (secrets) ON {schema}.subscriptions TO event_router": "SELECT on subscriptions.secrets for event_router",
    f"UPDATE (lease_until) ON {{schema}}.{JOBS} TO saga_orchestrator": f"UPDATE on {JOBS}.lease_until for saga",
    "DELETE ON {schema}.audit_log TO retention": "DELETE on audit_log for retention",
    "EXECUTE ON {routine} {schema}.resend_sagas TO event_router": "EXECUTE on resend_sagas for event_router",
    "EXECUTE ON {routine} {schema}.start_next_generation TO observer": "EXECUTE on start_next_generation for observer",
    "ALL PRIVILEGES ON {schema}.events TO event_router": "events for event_router",
    "ALL PRIVILEGES ON {schema}.gates TO job_worker": "gates for job_worker",
}
ONLY_HERE = {
    "postgresql": {"TRUNCATE ON {schema}.events TO retention": "TRUNCATE on events for retention"},
    "mysql": {
        "DROP ON {schema}.events TO retention": "DROP on events for retention",
        "SELECT ON {schema}.* TO task_worker": "SELECT on * for task_worker",
        "UPDATE, CREATE TEMPORARY TABLES ON {schema}.* TO task_worker": "UPDATE on * for task_worker",
    },
}
ROUTINE_WORD = {"postgresql": "FUNCTION", "mysql": "PROCEDURE"}


def spelled(text: str, engine: Database) -> str:
    return text.format(schema=engine.names.schema, routine=ROUTINE_WORD[engine.family])


async def test_every_widened_grant_is_reported_and_put_right_by_the_next_migrate(damaged: Database) -> None:
    widened = {**WIDENED, **ONLY_HERE[damaged.family]}
    for grant in widened:
        await damaged.sql(f"GRANT {spelled(grant, damaged)}", role="admin")
    too_much, missing = await difference(damaged)
    assert [report for report in widened.values() if not any(report in line for line in too_much)] == []
    await damaged.migrate()
    assert await difference(damaged) == ([], []), missing


MISSING = {
    f"UPDATE (status) ON {{schema}}.{SAGAS} FROM saga_orchestrator": f"UPDATE on {SAGAS}.status for saga_orchestrator",
    "SELECT ON {schema}.events FROM event_router": "SELECT on events for event_router",
    "DELETE ON {schema}.events FROM retention": "DELETE on events for retention",
    "EXECUTE ON {routine} {schema}.requeue_dead_letters FROM dead_letter_operator": "EXECUTE on requeue_dead_letters",
    f"UPDATE ON {{schema}}.{JOBS} FROM job_worker": f"UPDATE on {JOBS}.lease_until for job_worker",
}


async def test_every_missing_grant_is_reported_and_put_right_by_the_next_migrate(damaged: Database) -> None:
    for revoke in MISSING:
        await damaged.sql(f"REVOKE {spelled(revoke, damaged)}", role="admin")
    _, missing = await difference(damaged)
    assert [report for report in MISSING.values() if not any(report in line for line in missing)] == []
    await damaged.migrate()
    assert await difference(damaged) == ([], [])


async def test_a_role_that_was_widened_by_hand_can_work_right_after_the_next_migrate(damaged: Database) -> None:
    """Tried, not read: taking a whole table back takes the columns along on both engines."""
    await damaged.sql(f"GRANT UPDATE ON {damaged.names.schema}.{JOBS} TO job_worker", role="admin")
    await damaged.migrate()
    await damaged.sql(f"UPDATE {JOBS} SET lease_until = DEFAULT WHERE false", role="job_worker")


async def test_what_was_granted_to_everybody_is_taken_back_by_the_next_migrate(throwaway: Database) -> None:
    await throwaway.sql(f"GRANT SELECT ON {throwaway.names.schema}.gates TO PUBLIC", role="admin")
    await throwaway.sql("SELECT name FROM gates", role="task_rescuer")
    await throwaway.migrate()
    with pytest.raises(StatementDenied):
        await throwaway.sql("SELECT name FROM gates", role="task_rescuer")


@pytest.mark.one_engine("mariadb", reason="PostgreSQL grants on tables only")
async def test_what_was_granted_on_the_database_by_its_escaped_name_is_reported_and_taken_back(
    server: MariaDBServer,
) -> None:
    """An underscore is any one character there, so careful people escape it."""
    mine = Database(server, Names(schema="under_score", prefix="underscore"))
    await mine.migrate()
    group = mine.names.group("task_rescuer")
    await mine.sql(rf"GRANT SELECT ON `under\_score`.* TO `{group}`", role="admin")
    await mine.sql("SELECT name FROM gates", role="task_rescuer")
    assert await difference(mine) == ([rf"SELECT on under\_score.* for {group}"], [])
    await mine.migrate()
    assert await difference(mine) == ([], [])
    with pytest.raises(StatementDenied):
        await mine.sql("SELECT name FROM gates", role="task_rescuer")
    await mine.close()


@pytest.mark.one_engine("postgresql", reason="the two engines keep accounts in different catalogues")
async def test_each_login_is_a_plain_member_of_its_own_group_on_postgresql(engine: Database) -> None:
    names = engine.names
    rows = await engine.sql(
        "SELECT r.rolname, r.rolcanlogin, r.rolinherit,"
        " r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls AS mighty,"
        " ARRAY(SELECT g.rolname || CASE WHEN m.admin_option THEN ' admin' ELSE '' END"
        " FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid) AS groups"
        " FROM pg_roles r",
        role="admin",
    )
    found = {row["rolname"]: row for row in rows}
    for role in ALL_ROLES:
        login, group = found[names.login(role)], found[names.group(role)]
        assert (login["rolcanlogin"], login["rolinherit"], login["mighty"]) == (True, True, False), role
        assert (group["rolcanlogin"], group["mighty"]) == (False, False), role
        assert (login["groups"], group["groups"]) == ([names.group(role)], []), role


@pytest.mark.one_engine("mariadb", reason="the two engines keep accounts in different catalogues")
async def test_each_login_is_a_plain_member_of_its_own_group_on_mariadb(engine: Database) -> None:
    names = engine.names
    for role in ALL_ROLES:
        login = f"`{names.login(role)}`@`%`"
        lines = [next(iter(row.values())) for row in await engine.sql(f"SHOW GRANTS FOR {login}", role="admin")]
        assert sorted(line.split(" IDENTIFIED")[0] for line in lines) == [
            f"GRANT USAGE ON *.* TO {login}",
            f"GRANT `{names.group(role)}` TO {login}",
            f"SET DEFAULT ROLE `{names.group(role)}` FOR {login}",
        ]
        assert "IDENTIFIED BY PASSWORD" in " ".join(lines)
        group = await engine.sql(f"SHOW GRANTS FOR `{names.group(role)}`", role="admin")
        lines = [next(iter(row.values())) for row in group]
        assert [line for line in lines if " ON " not in line] == [], "a group that is in another group"
        server_wide = [line for line in lines if " ON *.* " in line]
        assert server_wide == [f"GRANT USAGE ON *.* TO `{names.group(role)}`"]
        assert [line for line in lines if "GRANT OPTION" in line] == []


@pytest.mark.parametrize("role", ALL_ROLES)
async def test_each_login_finds_itself_in_our_schema(engine: Database, role: str) -> None:
    login = await engine.open(role, schema="" if engine.family == "postgresql" else None)
    where = "current_schemas(false)" if engine.family == "postgresql" else "DATABASE()"
    async with login.bare_session() as session:
        await session.command("SELECT 1 FROM installation" if role != "schema_owner" else "SELECT 1 FROM events")
    expected = [engine.names.schema] if engine.family == "postgresql" else engine.names.schema
    assert await engine.value(f"SELECT {where}", role=role) == expected


def test_every_table_is_somebodys() -> None:
    """A table that no role reads is either dead or a guard."""
    read = {permission.table for role in ROLES for permission in role.may}
    assert set(tables_of("mysql")) - read == {"truncate_guard"}
