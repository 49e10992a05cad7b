"""The commands on the embedded database: from an empty folder, and back again."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.processes import Process, tidings
from tests.support.waiting import wait_until
from tidings.db.embedded import peek
from tidings.db.engine import open_engine
from tidings.db.names import Names
from tidings.errors import TidingsError

pytestmark = pytest.mark.slow


def test_migrate_doctor_and_url_work_from_an_empty_folder(folder: Path) -> None:
    run("migrate", cwd=folder)
    said = run("doctor", "--json", cwd=folder)
    assert {finding["health"] for finding in json.loads(said.stdout)} == {"right"}
    url = run("url", "event_router", cwd=folder).stdout.strip()
    assert url.startswith("postgresql://tidings_event_router:")

    server = peek(folder / "tidings-data")
    assert server is not None
    wait_until(lambda: not server.running, 30, "the server to stop after its last holder")
    with pytest.raises(TidingsError):
        asyncio.run(open_engine(url, owner="test", names=Names()))


async def test_url_can_hold_the_server_for_other_tools(folder: Path, start: Callable[[Process], Process]) -> None:
    run("migrate", cwd=folder)
    holding = tidings("url", "observer", "--hold")
    holding.cwd = folder
    start(holding)
    url = holding.wait_for_line("^postgresql://.*$", timeout=30)[0]
    engine = await open_engine(url, owner="test", names=Names())
    await engine.close()
    holding.wait_for_line("until Ctrl-C")
    holding.terminate()
    assert holding.wait(30) == 0


@pytest.mark.parametrize("command", [["doctor"], ["migrate", "--check"], ["url"]])
def test_looking_at_what_is_not_there_makes_nothing(folder: Path, command: list[str]) -> None:
    assert "tidings migrate" in run(*command, cwd=folder, exit=1).stderr
    assert list(folder.iterdir()) == []


def test_passwords_are_for_the_owner_of_the_folder_alone(folder: Path) -> None:
    run("migrate", cwd=folder)
    assert (folder / "tidings-data" / "passwords.json").stat().st_mode & 0o777 == 0o600


def test_demo_ends_by_itself_and_leaves_nothing_behind(folder: Path) -> None:
    said = run("demo", cwd=folder, env={"TMPDIR": str(folder)})
    assert "accepted events    1,000" in said.stdout
    assert "It adds up." in said.stdout
    assert list(folder.iterdir()) == []
