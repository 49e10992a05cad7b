"""`tidings migrate`, `doctor` and `url` as processes, on one's own server of either engine."""

import json
import re
from pathlib import Path

import pytest

from tests.support.commands import run, single_login
from tests.support.database import SERVERS, Database
from tests.support.servers import MariaDBServer, PostgresServer
from tidings.db.names import Names
from tidings.flow import ROLE_NAMES

pytestmark = pytest.mark.slow

URL_LINE = re.compile(r"^TIDINGS_DATABASE_URL_(\w+)=(\S+)$", re.MULTILINE)
# The test servers give it up for speed, which doctor must not overlook.
NOT_RIGHT = {"durability"}


def doctor(cwd: Path, environment: dict[str, str]) -> dict[str, dict[str, str]]:
    """Its findings by their subject."""
    said = run("doctor", "--json", cwd=cwd, exit=1, env=environment).stdout
    return {finding["subject"]: finding for finding in json.loads(said)}


def not_right(findings: dict[str, dict[str, str]]) -> set[str]:
    return {subject for subject, finding in findings.items() if finding["health"] != "right"}


@pytest.fixture
def unmade(server: PostgresServer | MariaDBServer, request: pytest.FixtureRequest) -> Database:
    """Names for an installation that does not exist yet."""
    name = f"cli{abs(hash(request.node.name)) % 10**8}"
    return Database(server, Names(schema=name, prefix=name))


def test_migrate_makes_everything_and_shows_the_new_logins_once(unmade: Database, tmp_path: Path) -> None:
    first = run("migrate", cwd=tmp_path, env=single_login(unmade))
    urls = {f"TIDINGS_DATABASE_URL_{role}": url for role, url in URL_LINE.findall(first.stdout)}
    assert len(urls) == len(ROLE_NAMES) + 1
    # What stands there is secret, and all of it: who keeps the two apart has no password in a log.
    assert len(first.stdout.splitlines()) == len(urls)
    assert "://" not in first.stderr
    assert "gates are closed" in first.stderr

    names = {"TIDINGS_SCHEMA": unmade.names.schema, "TIDINGS_PREFIX": unmade.names.prefix}
    assert not_right(doctor(tmp_path, urls | names)) == NOT_RIGHT
    assert URL_LINE.findall(run("migrate", cwd=tmp_path, env=single_login(unmade)).stdout) == []


def test_check_says_what_is_missing_and_exits_1_until_it_is_there(unmade: Database, tmp_path: Path) -> None:
    behind = run("migrate", "--check", cwd=tmp_path, exit=1, env=single_login(unmade))
    assert "missing: 0001 events" in behind.stdout
    run("migrate", cwd=tmp_path, env=single_login(unmade))
    run("migrate", "--check", cwd=tmp_path, env=single_login(unmade))


def test_print_changes_nothing(unmade: Database, tmp_path: Path) -> None:
    printed = run("migrate", "--print", cwd=tmp_path, env=single_login(unmade))
    assert "webhook_delivery_sagas" in printed.stdout
    assert "GRANT" in printed.stdout
    assert "GRANT" not in run("migrate", "--print", "--roles", "none", cwd=tmp_path, env=single_login(unmade)).stdout
    run("migrate", "--check", cwd=tmp_path, exit=1, env=single_login(unmade))


def test_roles_print_migrates_and_prints_the_accounts(unmade: Database, tmp_path: Path) -> None:
    printed = run("migrate", "--roles", "print", cwd=tmp_path, env=single_login(unmade))
    assert "CHOOSE-A-PASSWORD" in printed.stdout
    run("migrate", "--check", cwd=tmp_path, env=single_login(unmade))


def test_doctor_finds_an_installation_with_own_logins_in_order(engine: Database, tmp_path: Path) -> None:
    assert not_right(doctor(tmp_path, engine.environment())) == NOT_RIGHT


def test_doctor_says_that_one_login_for_all_is_no_boundary(engine: Database, tmp_path: Path) -> None:
    said = doctor(tmp_path, single_login(engine))
    assert said["boundary"]["health"] == "doubtful"
    assert "no boundary" in said["boundary"]["says"]
    assert said["rights"]["health"] == "right"


def test_doctor_names_a_role_without_a_url_and_examines_the_rest(engine: Database, tmp_path: Path) -> None:
    environment = engine.environment()
    del environment["TIDINGS_DATABASE_URL_JOB_WORKER"]
    said = doctor(tmp_path, environment)
    assert said["rights"]["health"] == "wrong"
    assert "no database URL for the role job_worker" in said["rights"]["says"]
    assert said["tables and indexes"]["health"] == "right"


DAMAGE = {
    "a dropped index": ("DROP INDEX idx_dead_event{on}", "tables and indexes", "idx_dead_event is missing"),
    "a widened grant": ("GRANT UPDATE ON {schema}.events TO {router}", "rights", "too much: UPDATE on events"),
    "a grant to a login": ("GRANT DELETE ON {schema}.gates TO {login}", "rights", "too much: DELETE on gates"),
    "a grant to everybody": ("GRANT DELETE ON {schema}.gates TO PUBLIC", "rights", "DELETE on gates for public"),
    "a missing grant": ("REVOKE SELECT ON {schema}.gates FROM {router}", "rights", "missing: SELECT on gates"),
    "an unfinished migration": ("DELETE FROM schema_migrations WHERE step = 'gates'", "schema version", "1 steps"),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_doctor_names_the_damage_and_exits_1(throwaway: Database, tmp_path: Path, damage: str) -> None:
    text, subject, words = DAMAGE[damage]
    on = " ON dead_letters" if throwaway.family == "mysql" else ""
    quote = '"' if throwaway.family == "postgresql" else "`"
    router = f"{quote}{throwaway.names.group('event_router')}{quote}"
    await throwaway.sql(
        text.format(on=on, schema=throwaway.names.schema, router=router, login=throwaway.names.login("event_router")),
        role="admin",
    )
    said = doctor(tmp_path, throwaway.environment())
    assert said[subject]["health"] == "wrong"
    assert words in said[subject]["says"]
    assert said[subject]["remedy"]


def test_doctor_says_when_nothing_was_ever_migrated(unmade: Database, tmp_path: Path) -> None:
    said = run("doctor", cwd=tmp_path, exit=1, env=single_login(unmade)).stdout
    assert "✘" in said
    assert "Run `tidings migrate`" in said


def test_doctor_is_content_with_a_durable_server(own_kind: str, tmp_path: Path) -> None:
    with SERVERS[own_kind](durable=True) as server:
        mine = Database(server)
        run("migrate", cwd=tmp_path, env=single_login(mine))
        assert "✘" not in run("doctor", cwd=tmp_path, env=single_login(mine)).stdout


def test_an_unreachable_server_is_said_in_one_sentence(tmp_path: Path) -> None:
    said = run(
        "migrate",
        "--connect-patience",
        "1s",
        cwd=tmp_path,
        exit=1,
        env={"TIDINGS_DATABASE_URL": "postgresql://nobody:hidden@127.0.0.1:1/none"},
    )
    assert "can't be reached" in said.stderr
    assert "127.0.0.1:1" in said.stderr
    assert "hidden" not in said.stderr


def test_url_gives_the_way_in_for_other_tools(engine: Database, tmp_path: Path) -> None:
    said = run("url", "observer", cwd=tmp_path, env=engine.environment())
    assert said.stdout.strip() == engine.url("observer")
    assert "is no role" in run("url", "emperor", cwd=tmp_path, exit=2, env=engine.environment()).stderr


def test_url_without_any_database_says_how_to_get_one(tmp_path: Path) -> None:
    said = run("url", cwd=tmp_path, exit=1)
    assert "tidings migrate" in said.stderr


def test_all_bad_settings_are_reported_at_once_and_nothing_is_started(tmp_path: Path) -> None:
    env = {"TIDINGS_LEASE_SECONDS": "soon", "TIDINGS_LESE": "1"}
    said = run("migrate", "--port", "high", cwd=tmp_path, exit=2, env=env)
    assert all(word in said.stderr for word in ("--port", "TIDINGS_LEASE_SECONDS", "TIDINGS_LESE"))
    assert list(tmp_path.iterdir()) == []
