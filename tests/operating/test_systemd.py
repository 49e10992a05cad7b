"""The units can be used as they are: systemd takes them, and a process needs no more than its own file of settings."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.database import Database
from tests.support.ports import ReservedPort
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.cli.commands import COMMANDS
from tidings.db.accounts import ALL_ROLES
from tidings.processes import PROCESSES

OPERATING = Path(__file__).parents[2] / "docs" / "operating"
UNITS = sorted([*(OPERATING / "systemd").glob("*.service"), *(OPERATING / "systemd").glob("*.target")])
SYSTEMD = shutil.which("systemd-analyze")


@pytest.mark.skipif(
    SYSTEMD is None, reason="systemd-analyze is missing: apt-get install systemd (scripts/install-servers)"
)
def test_systemd_has_nothing_to_say_against_the_units(tmp_path: Path) -> None:
    program = Path(sys.executable).parent / "tidings"
    for unit in UNITS:
        text = unit.read_text("utf-8").replace("/opt/tidings/bin/tidings", str(program))
        (tmp_path / unit.name).write_text(text, "utf-8")
    files = [str(tmp_path / unit.name) for unit in UNITS]
    ended = subprocess.run([str(SYSTEMD), "verify", *files], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_the_target_wants_processes_that_there_are() -> None:
    wanted = re.findall(r"tidings@([\w-]+)\.service", (OPERATING / "systemd" / "tidings.target").read_text("utf-8"))
    assert {*wanted} == {*PROCESSES} - {"task-worker", "retention"}  # which not everybody has
    started = re.compile(r"^ExecStart=/opt/tidings/bin/tidings (\w+)", re.MULTILINE)
    commands = {command for unit in UNITS for command in started.findall(unit.read_text("utf-8"))}
    assert commands
    assert commands <= {*COMMANDS}


def test_new_passwords_go_to_a_file_of_roots_and_not_into_the_journal() -> None:
    """`migrate` prints them, and nothing else, on standard output; what is not said of errors would follow them."""
    unit = (OPERATING / "systemd" / "tidings-migrate.service").read_text("utf-8")
    said = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
    assert re.fullmatch(r"append:/etc/tidings/[\w-]+\.env", said["StandardOutput"])
    assert (said["StandardError"], said["UMask"]) == ("journal", "0077")


def test_the_page_says_which_login_each_process_needs() -> None:
    page = (OPERATING / "rights.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `([\w-]+)` \| `(\w+)`", page, re.MULTILINE))
    assert listed == {name: process.role for name, process in PROCESSES.items()}
    (api,) = re.findall(r"^\| `api` \| (.*) \|$", page, re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", api)} <= {*ALL_ROLES}


def settings_of(file: str) -> list[str]:
    text = (OPERATING / "systemd" / file).read_text("utf-8")
    return re.findall(r"^(TIDINGS_\w+)=", text, re.MULTILINE)


@pytest.mark.slow
async def test_a_worker_runs_with_its_own_file_of_settings_alone(
    engine: Database, start: Callable[[Process], Process]
) -> None:
    port = ReservedPort()
    known = {**engine.environment(), "TIDINGS_SECRET_KEYS": "k", "TIDINGS_METRICS_PORT": str(port.number)}
    given = {name: known.get(name, "json") for name in (*settings_of("common.env"), *settings_of("worker.env"))}
    start(tidings("run", "worker", **given))

    async def present() -> bool:
        return bool(await engine.value("SELECT count(*) FROM worker_presence WHERE process = 'worker'"))

    await eventually(present, 30, "a sign of life")
    port.release()


@pytest.mark.slow
@pytest.mark.one_engine("postgresql", reason="which logins are asked for is the same on both")
@pytest.mark.parametrize("process", [name for name in PROCESSES if name not in ("worker", "task-worker")])
async def test_every_process_runs_with_the_logins_that_the_page_lists(
    engine: Database, start: Callable[[Process], Process], process: str
) -> None:
    page = (OPERATING / "rights.md").read_text("utf-8")
    (cell,) = re.findall(rf"^\| `{process}` \| (.*) \|$", page, re.MULTILINE)
    names = [f"TIDINGS_DATABASE_URL_{role.upper()}" for role in re.findall(r"`(\w+)`", cell)]
    given = {name: engine.environment()[name] for name in names}
    one = start(tidings("run", process, TIDINGS_SECRET_KEYS="k", TIDINGS_PORT="0", TIDINGS_LOG_FORMAT="json", **given))

    async def present() -> bool:
        shown = f"SELECT count(*) FROM worker_presence WHERE process = '{process}'"
        return "takes requests" in one.output or bool(await engine.value(shown))

    await eventually(present, 30, "a sign of life")


def test_the_examples_of_settings_are_settings(tmp_path: Path) -> None:
    """Names that nobody knows are refused, so that a typing error is noticed."""
    values = {"TIDINGS_LOG_FORMAT": "json", "TIDINGS_METRICS_PORT": "9433", "TIDINGS_SECRET_KEYS": "k"}
    url = "postgresql://nobody:x@127.0.0.1:1/none"
    given = {name: values.get(name, url) for name in (*settings_of("common.env"), *settings_of("worker.env"))}
    said = run("run", "worker", "--connect-patience", "0s", cwd=tmp_path, exit=1, env=given)
    assert "can't be reached" in said.stderr
