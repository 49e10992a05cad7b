"""`tidings run task-worker --app …`: what it needs, what it says when that is not there; tasks in `doctor`."""

from pathlib import Path

import pytest

from tests.support.commands import Shell
from tests.support.database import Database
from tidings.db.accounts import ALL_ROLES
from tidings.processes import everything
from tidings.settings import load_settings

pytestmark = pytest.mark.slow


def test_without_an_application_it_says_what_is_missing(shell: Shell) -> None:
    assert "needs the module with your handlers: --app myapp.tasks" in shell.says("run", "task-worker", exit=2)


def test_a_module_that_is_not_there_is_named(shell: Shell) -> None:
    said = shell.says("run", "task-worker", "--app", "nowhere.tasks", exit=1)
    assert "There is no module nowhere.tasks" in said
    assert str(shell.cwd) in said


def test_a_name_that_is_no_module_is_a_wrong_setting(shell: Shell) -> None:
    assert "is no Python module" in shell.says("run", "task-worker", "--app", "./tasks.py", exit=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "registers no handler"),
        ("import missing_elsewhere", "can't be imported: ModuleNotFoundError: No module named 'missing_elsewhere'"),
        ("1 / 0", "can't be imported: ZeroDivisionError"),
        ("import tidings\n@tidings.task('subscription.verify')\ndef a(payload): ...", "is a type of our own"),
        ("raise SystemExit(3)", "can't be imported: SystemExit: 3"),
        (
            "import tidings\n@tidings.task('A', timeout=10, visibility_timeout=20)\ndef a(payload): ...",
            "less than 3 × its handler timeout",
        ),
        ("import tidings\n@tidings.task('A', timeout=3600)\ndef a(payload): ...", "less than 3 × its handler timeout"),
        (
            "import tidings\n@tidings.task('A')\ndef a(payload): ...\n@tidings.task('A')\ndef b(payload): ...",
            "A has two handlers: broken_app.a and broken_app.b",
        ),
    ],
    ids=["empty", "import", "crash", "own", "exit", "terms", "default terms", "twice"],
)
@pytest.mark.one_engine("postgresql", reason="the module is looked at before the database")
def test_a_module_that_can_not_be_used_says_why(shell: Shell, text: str, said: str) -> None:
    (shell.cwd / "broken_app.py").write_text(text, encoding="utf-8")
    assert said in shell.says("run", "task-worker", "--app", "broken_app", exit=1)


def test_everything_has_a_rescuer_and_without_an_application_no_task_worker() -> None:
    without = everything(load_settings(roles=ALL_ROLES, environ={}))
    assert "rescuer" in without
    assert "task-worker" not in without
    assert {*everything(load_settings(flags={"app": "shop"}, roles=ALL_ROLES, environ={}))} == {
        *without,
        "task-worker",
    }


async def test_doctor_tells_of_tasks_that_nobody_handles(engine: Database, tmp_path: Path) -> None:
    shell = Shell(engine, tmp_path)
    await engine.sql(
        "INSERT INTO sys_pending_tasks (biz_type, biz_key, next_run_time) VALUES ('MAIL', 'a', '2020-01-01'),"
        " ('MAIL', 'b', '2100-01-01')"
    )
    finding = shell.doctor()["tasks"]
    assert finding["health"] == "doubtful"
    assert "no task-worker runs; 1 of type MAIL wait, the first for" in finding["says"]
    await engine.sql(
        "INSERT INTO worker_presence (worker_id, process, host, pid, version) VALUES ('w', 'task-worker', 'h', 1, '0')"
    )
    finding = shell.doctor()["tasks"]
    assert finding["says"].startswith("1 of type MAIL wait")
    assert "No running worker handles them" in finding["remedy"]
