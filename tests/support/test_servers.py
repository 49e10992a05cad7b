"""The throwaway servers of the tests: like production where it matters, and never left behind."""

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest

from tests.support import families
from tests.support.ports import LOOPBACK, ReservedPort
from tests.support.processes import Process, Start
from tests.support.server_process import ENVIRONMENT, ServerProcess
from tests.support.servers import SERVERS, MariaDBServer, PostgresServer, each_server
from tests.support.sessions import connect
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

server = pytest.fixture(each_server, scope="module", params=SERVERS, ids=lambda kind: kind.engine)


async def ask(server: ServerProcess, sql: str) -> list[tuple[Any, ...]]:
    session = await connect(server.admin_url)
    try:
        return await session.run(sql)
    finally:
        await session.close()


async def test_the_administrator_gets_in_with_the_url(server: ServerProcess) -> None:
    assert await ask(server, "SELECT 1") == [(1,)]


async def test_nobody_gets_in_without_the_password(server: ServerProcess) -> None:
    parts = urlsplit(server.admin_url)
    url = parts._replace(netloc=f"{parts.username}:wrong@{LOOPBACK}:{server.port}").geturl()
    with pytest.raises(Exception, match=r"password authentication failed|Access denied"):
        await connect(url)


async def test_the_server_does_not_live_in_utc(server: ServerProcess) -> None:
    """So that a time that is stored or compared in local time is eight hours off and shows."""
    hours = {
        "postgresql": "SELECT date_part('timezone_hour', now())::int",
        "mariadb": "SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW())",
    }
    assert await ask(server, hours[server.engine]) == [(8,)]


async def test_the_isolation_level_is_left_at_the_default_of_the_engine(server: ServerProcess) -> None:
    """The product must set the level it needs by itself."""
    level = {
        "postgresql": ("SHOW default_transaction_isolation", "read committed"),
        "mariadb": ("SELECT @@global.tx_isolation", "REPEATABLE-READ"),
    }
    sql, expected = level[server.engine]
    assert await ask(server, sql) == [(expected,)]


def test_root_runs_the_server_as_somebody_else(server: ServerProcess) -> None:
    assert psutil.Process(server.pid).uids().real != 0


@pytest.mark.parametrize("end", ["stop", "kill", "nothing"])
async def test_committed_data_and_the_port_survive(server: ServerProcess, end: str) -> None:
    schema = {"postgresql": "public", "mariadb": "mysql"}[server.engine]
    await ask(server, f"DROP TABLE IF EXISTS {schema}.kept")
    await ask(server, f"CREATE TABLE {schema}.kept (id int)")
    await ask(server, f"INSERT INTO {schema}.kept VALUES (7)")
    port = server.port
    ends: dict[str, Callable[[], None]] = {"stop": server.stop, "kill": server.kill, "nothing": lambda: None}
    ends[end]()
    server.restart()
    assert await ask(server, f"SELECT id FROM {schema}.kept") == [(7,)]
    assert server.port == port


async def test_kill_leaves_no_child_behind(server: ServerProcess) -> None:
    session = await connect(server.admin_url)
    family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    server.kill()
    await session.close()
    assert not any(map(families.is_alive, family))
    server.restart()


def test_a_killed_server_keeps_its_port_reserved(server: ServerProcess) -> None:
    server.kill()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind((LOOPBACK, server.port))
    server.restart()


def test_reserved_ports_are_free_for_their_server_only() -> None:
    first, second = ReservedPort(), ReservedPort()
    assert first.number != second.number
    with socket.create_server((LOOPBACK, first.number)):
        pass
    first.release()
    second.release()


def test_stop_can_remove_all_traces(server: ServerProcess) -> None:
    other = type(server)().start()
    directory, pid = other.directory, other.pid
    other.stop(remove=True)
    assert not directory.exists()
    assert not psutil.pid_exists(pid)


def test_servers_and_their_data_die_with_the_test_process(server: ServerProcess, start: Start) -> None:
    script = f"""
import signal
from tests.support.servers import {type(server).__name__} as Server
server = Server().start()
print("server", server.pid, server.directory, flush=True)
signal.pause()
"""
    tests = start(Process([sys.executable, "-c", script], cwd=ROOT))
    _, pid, directory = tests.wait_for_line(r"server (\d+) (.+)", timeout=30)[0].split()
    family = [psutil.Process(int(pid)), *psutil.Process(int(pid)).children(recursive=True)]
    os.kill(tests.pid, signal.SIGKILL)
    wait_until(lambda: not any(map(families.is_alive, family)), what="the server to be gone")
    wait_until(lambda: not Path(directory).exists(), what="its data to be removed")


def test_a_server_that_cannot_start_shows_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    failing = ["/bin/sh", "-c", "echo no such disk; exit 3"]
    monkeypatch.setattr(PostgresServer, "_install", lambda self: None)
    monkeypatch.setattr(PostgresServer, "_command", lambda self: failing)
    with pytest.raises(RuntimeError, match="ended with code 3") as failure:
        PostgresServer().start()
    assert any("no such disk" in note for note in failure.value.__notes__)


def test_what_is_not_installed_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PATH", "/nowhere")
    available = MariaDBServer.available()
    assert not available
    assert available.reason == "MariaDB is not installed: no mariadbd and no mariadb-install-db"
