"""`tidings run … --processes N`: several processes of the same roles, one that leads them, and how they end."""

import os
import signal
import sys
from collections.abc import Callable
from types import SimpleNamespace

import psutil
import pytest

from tests.support import families
from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually, wait_until
from tidings.cli.running import commands
from tidings.db.accounts import ALL_ROLES
from tidings.settings import load_settings

KEY = "a-key-that-nobody-else-has"
PRESENT = "SELECT COUNT(*) FROM worker_presence WHERE process = 'worker'"

Workers = Callable[..., Process]


@pytest.fixture
def workers(start: Callable[[Process], Process], engine: Database) -> Workers:
    def started(*arguments: str) -> Process:
        return start(tidings("run", "worker", *arguments, **engine.environment(), TIDINGS_SECRET_KEYS=KEY))

    return started


async def both_are_there(engine: Database, leader: Process) -> list[psutil.Process]:
    async def are_there() -> bool:
        return bool(await engine.value(PRESENT) == 2)

    await eventually(are_there, 40, "both workers")
    return list(psutil.Process(leader.pid).children())


@pytest.mark.slow
async def test_there_are_so_many_and_all_end_when_their_leader_is_told(engine: Database, workers: Workers) -> None:
    leader = workers("--processes", "2")
    children = await both_are_there(engine, leader)
    assert len(children) == 2
    # As a terminal does it for Ctrl-C: to the whole group in which the leader is.
    os.killpg(os.getpgid(leader.pid), signal.SIGINT)
    assert leader.wait(30) == 0
    assert not any(child.is_running() for child in children)
    assert await engine.value(PRESENT) == 0, "they have taken leave"
    assert "Traceback" not in leader.output


@pytest.mark.slow
async def test_one_that_crashed_is_begun_again(engine: Database, workers: Workers) -> None:
    leader = workers("--processes=2")
    first, other = await both_are_there(engine, leader)
    first.kill()
    leader.wait_for_line("role crashed, begun again", 20)
    assert "ended by itself, with code -9" in leader.output

    def is_replaced() -> bool:
        return {child.pid for child in psutil.Process(leader.pid).children()} - {first.pid, other.pid} != set()

    wait_until(is_replaced, 20, "another one in its place")
    assert other.is_running(), "its neighbour goes on"
    leader.terminate()
    assert leader.wait(30) == 0


@pytest.mark.slow
@pytest.mark.quick_on("postgresql")
async def test_without_a_leader_they_stop_by_themselves(engine: Database, workers: Workers) -> None:
    leader = workers("--processes", "2")
    children = await both_are_there(engine, leader)
    os.kill(leader.pid, signal.SIGKILL)

    def all_are_gone() -> bool:
        return not any(map(families.is_alive, children))

    try:
        wait_until(all_are_gone, 30, "the processes to end")
        assert await engine.value(PRESENT) == 0, "they have taken leave"
    finally:
        # Nobody else would find them: they are of no family any more.
        for child in filter(families.is_alive, children):
            child.kill()


@pytest.mark.one_engine("postgresql", reason="it is refused before the database is looked at")
def test_who_has_a_port_of_its_own_can_not_be_several(shell: Shell) -> None:
    assert "only one can listen at the port of api" in shell.says("run", "all", "--processes", "2", exit=2)
    assert "--processes is for those that keep running" in shell.says(
        "run", "router", "--once", "--processes", "2", exit=2
    )


def test_each_is_run_as_its_leader_was_with_a_port_for_its_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["tidings", "run", "worker", "--processes", "2", "--worker-slots", "64", "--processes=2"]
    monkeypatch.setattr("sys.argv", given)
    started_with = SimpleNamespace(__spec__=SimpleNamespace(name="tidings.__main__"))
    monkeypatch.setitem(sys.modules, "__main__", started_with)
    same = ["-m", "tidings", "run", "worker", "--worker-slots", "64", "--led"]
    plain = load_settings(roles=ALL_ROLES, environ={})
    assert commands(plain, 2) == [same, same]
    shown = load_settings(flags={"metrics_port": "9100"}, roles=ALL_ROLES, environ={})
    assert commands(shown, 2) == [[*same, "--metrics-port=9100"], [*same, "--metrics-port=9101"]]
