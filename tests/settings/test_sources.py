"""Where settings come from, which source wins, and what is said about unknown names."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from tests.settings.loading import NOWHERE, loaded, loaded_from_file, problems_in_file, problems_of
from tidings.errors import SettingsInvalid
from tidings.settings import load_settings


def test_without_any_source_the_defaults_are_in_force() -> None:
    settings = loaded()
    assert settings.installation.data_dir == NOWHERE / "tidings-data"
    assert settings.database.database_url == ""
    assert (settings.server.host, settings.server.port) == ("127.0.0.1", 8420)
    assert settings.ingest.max_payload == 262_144
    assert settings.retries.max_delay_seconds == 21_600
    assert settings.retention.keep_finished is None


def test_the_environment_overrides_the_file_and_a_flag_overrides_both(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text('[worker]\nlease_seconds = "30s"\nmax_lease_resets = 5\nclaim_hint = false')
    settings = loaded({"TIDINGS_LEASE_SECONDS": "2m", "TIDINGS_PORT": "1000"}, {"port": "2000"}, directory=tmp_path)
    assert settings.worker.max_lease_resets == 5
    assert settings.worker.claim_hint is False
    assert settings.worker.lease_seconds == 120
    assert settings.server.port == 2000


@pytest.mark.parametrize("name", ["lease_seconds", "lease-seconds"])
def test_a_flag_is_named_like_the_setting_with_either_dash(name: str) -> None:
    assert loaded(flags={name: "90"}).worker.lease_seconds == 90


def test_the_names_fixed_by_the_design_come_out_exactly() -> None:
    settings = loaded(
        {
            "TIDINGS_DATABASE_URL": "postgresql://app@db/app",
            "TIDINGS_DATABASE_URL_EVENT_ROUTER": "postgresql://router@db/app",
            "TIDINGS_DATA_DIR": "/var/lib/tidings",
            "TIDINGS_HOST": "0.0.0.0",
            "TIDINGS_PORT": "80",
            "TIDINGS_ADMIN_KEY": "first",
            "TIDINGS_SECRET_KEYS": "new,old",
            "TIDINGS_ALLOW_HTTP_HOSTS": "localhost, ::1",
            "TIDINGS_ALLOW_NETWORKS": "127.0.0.0/8,::1/128,10.1.0.0/16:8080,fd00::/8:443",
            "TIDINGS_LEASE_SECONDS": "5",
            "TIDINGS_BASE_DELAY_SECONDS": "0.05",
            "TIDINGS_MAX_RETRY_LIMIT": "3",
        }
    )
    assert settings.database.database_url == "postgresql://app@db/app"
    assert settings.database.urls == {"event_router": "postgresql://router@db/app"}
    assert settings.installation.data_dir == Path("/var/lib/tidings")
    assert (settings.server.host, settings.server.port, settings.server.admin_key) == ("0.0.0.0", 80, "first")
    assert settings.secrets.secret_keys == ("new", "old")
    assert settings.sending.allow_http_hosts == ("localhost", "::1")
    assert settings.sending.allow_networks == (
        *(ip_network("127.0.0.0/8"), ip_network("::1/128")),
        *((ip_network("10.1.0.0/16"), 8080), (ip_network("fd00::/8"), 443)),
    )
    assert settings.worker.lease_seconds == 5
    assert (settings.retries.base_delay_seconds, settings.retries.max_retry_limit) == (0.05, 3)


def test_role_urls_stand_in_a_table_of_the_file_and_an_empty_one_counts_as_none(tmp_path: Path) -> None:
    toml = '[database.urls]\nevent_router = "mysql://a@db/x"\njob_worker = "mysql://b@db/x"'
    settings = loaded_from_file(tmp_path, toml, {"TIDINGS_DATABASE_URL_JOB_WORKER": ""})
    assert settings.database.urls == {"event_router": "mysql://a@db/x"}


def test_an_unknown_role_is_a_problem_in_file_environment_and_flags(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text('[database.urls]\nevent_routr = "mysql://a@db/x"')
    problems = problems_of({"TIDINGS_DATABASE_URL_JOBWORKER": ""}, {"database_url_saga_orchestrater": ""}, tmp_path)
    assert problems == [
        "tidings.toml: [database.urls] event_routr: there is no such role; did you mean event_router?",
        "environment: TIDINGS_DATABASE_URL_JOBWORKER: there is no such setting; "
        "did you mean TIDINGS_DATABASE_URL_JOB_WORKER?",
        "flag: --database-url-saga-orchestrater: there is no such setting; "
        "did you mean --database-url-saga-orchestrator?",
    ]


def test_all_problems_of_all_sources_are_told_at_once_each_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_text('[worker]\nlease_seconds = "5 bananas"\nmax_lease_reset = 3')
    problems = problems_of(
        {"TIDINGS_LEASE_SECOND": "1", "TIDINGS_LEASE_SECONDS": "-1"}, {"prot": "1", "port": "x"}, tmp_path
    )
    assert sorted(problems) == sorted(
        [
            "tidings.toml: [worker] lease_seconds: '5 bananas' is no duration; "
            "write 30s, 5m, 6h, 1d or a number of seconds",
            "tidings.toml: [worker] max_lease_reset: there is no such setting here; "
            "did you mean [worker] max_lease_resets?",
            "environment: TIDINGS_LEASE_SECOND: there is no such setting; did you mean TIDINGS_LEASE_SECONDS?",
            "environment: TIDINGS_LEASE_SECONDS: '-1' is too little; the least is 1s",
            "flag: --prot: there is no such setting; did you mean --port?",
            "flag: --port: 'x' is no whole number; write one like 20",
        ]
    )


def test_a_setting_in_the_wrong_section_is_shown_its_place(tmp_path: Path) -> None:
    assert problems_in_file(tmp_path, "port = 1\n[worker]\njitter = 0.5") == [
        "tidings.toml: port: there is no such setting here; did you mean [server] port?",
        "tidings.toml: [worker] jitter: there is no such setting here; did you mean [retries] jitter?",
    ]


def test_an_unknown_section_is_a_problem_and_so_is_a_value_in_place_of_one(tmp_path: Path) -> None:
    assert problems_in_file(tmp_path, "log = 1\n[workers]\nx = 1\n[server.tls]\ny = 2") == [
        "tidings.toml: log is a section; write [log] on a line of its own and its settings below",
        "tidings.toml: [workers]: there is no such section; did you mean [worker]?",
        "tidings.toml: [server.tls]: there is no such section; did you mean [server]?",
    ]


def test_broken_toml_is_told_with_line_and_column(tmp_path: Path) -> None:
    (problem,) = problems_in_file(tmp_path, "[worker]\nlease_seconds 5")
    assert problem.startswith("tidings.toml: ")
    assert "(at line 2, column 15)" in problem


def test_a_file_that_is_not_utf_8_is_told_with_line_and_column(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_bytes(b"[worker]\nx = '\xff'")
    assert problems_of(directory=tmp_path) == ["tidings.toml: is not UTF-8 text (at line 2, column 6)"]


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    (tmp_path / "tidings.toml").write_bytes(b"\xef\xbb\xbf[server]\nport = 1")
    assert loaded(directory=tmp_path).server.port == 1


def test_a_file_nested_beyond_reason_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems_in_file(tmp_path, "x = " + "[" * 100_000)
    assert problem.startswith("tidings.toml: ")


def test_tidings_config_names_another_file_and_the_flag_wins(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("[server]\nport = 1")
    (tmp_path / "two.toml").write_text("[server]\nport = 2")
    environ = {"TIDINGS_CONFIG": "one.toml"}
    assert loaded(environ, directory=tmp_path).server.port == 1
    assert loaded(environ, {"config": str(tmp_path / "two.toml")}, tmp_path).server.port == 2


def test_a_named_file_must_be_there_and_readable(tmp_path: Path) -> None:
    for name in ("missing.toml", "."):
        (problem,) = problems_of({"TIDINGS_CONFIG": name}, directory=tmp_path)
        assert problem.startswith(f"{name}: can't be read: ")


def test_variables_of_test_harnesses_and_other_programs_are_ignored() -> None:
    assert loaded({"TIDINGS_TEST_POSTGRESQL": "x", "PATH": "/bin", "XTIDINGS_PORT": "y"}) == loaded()


def test_roles_are_unknown_unless_the_caller_names_them() -> None:
    with pytest.raises(SettingsInvalid):
        load_settings(environ={"TIDINGS_DATABASE_URL_JOB_WORKER": "mysql://a@db/x"}, directory=NOWHERE)


def test_odd_names_from_outside_do_not_break_the_message(tmp_path: Path) -> None:
    (problem,) = problems_in_file(tmp_path, '[worker]\n"two\\nlines" = 1')
    assert problem == "tidings.toml: [worker] 'two\\nlines': there is no such setting here"
