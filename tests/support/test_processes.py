"""The processes that tests start: read, signalled, and never left behind."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from tests.support import families
from tests.support.processes import Process, Start, processes, tidings
from tests.support.waiting import eventually, wait_until

ROOT = Path(__file__).parents[2]
SLEEPER = "import signal; print('ready', flush=True); signal.pause()"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}])
print("child", child.pid, flush=True)
child.wait()
"""


def python(code: str, **env: str) -> Process:
    return Process([sys.executable, "-c", code], env)


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or not families.is_alive(psutil.Process(pid))


def test_a_line_of_output_is_awaited_and_its_match_returned(start: Start) -> None:
    process = start(python("import sys; print('listening on 81', file=sys.stderr, flush=True)"))
    assert process.wait_for_line(r"listening on (\d+)")[1] == "81"


def test_a_line_can_be_awaited_a_second_time(start: Start) -> None:
    process = start(python("print('started 1\\nother\\nstarted 2', flush=True)"))
    assert process.wait_for_line(r"started (\d)", nth=2)[1] == "2"


def test_a_missing_line_shows_all_the_output_so_far(start: Start) -> None:
    process = start(python(SLEEPER))
    process.wait_for_line("ready")
    with pytest.raises(AssertionError, match=r"(?s)no line matched 'never' within 0.1 s.*ready"):
        process.wait_for_line("never", timeout=0.1)


def test_a_process_that_ends_is_not_awaited_until_the_timeout(start: Start) -> None:
    process = start(python("raise SystemExit('no configuration')"))
    with pytest.raises(AssertionError, match=r"(?s)ended without a line.*no configuration"):
        process.wait_for_line("ready", timeout=60)
    assert process.wait() == 1


def test_an_overdue_process_shows_all_the_output_so_far(start: Start) -> None:
    process = start(python(SLEEPER))
    process.wait_for_line("ready")
    with pytest.raises(AssertionError, match=r"(?s)still running after 0.1 s.*ready"):
        process.wait(timeout=0.1)


def test_terminate_lets_the_process_say_goodbye(start: Start) -> None:
    process = start(
        python(
            "import signal, sys\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit('bye'))\n"
            "print('ready', flush=True); signal.pause()"
        )
    )
    process.wait_for_line("ready")
    process.terminate()
    process.wait_for_line("bye")
    assert process.wait() == 1


def test_kill_ends_the_children_too(start: Start) -> None:
    process = start(python(PARENT))
    child = int(process.wait_for_line(r"child (\d+)")[1])
    process.kill()
    assert process.wait() == -signal.SIGKILL
    assert gone(child)


def test_a_frozen_process_stands_still_until_it_is_thawed(start: Start) -> None:
    process = start(python("import time\nwhile True: print('tick', flush=True); time.sleep(0.01)"))
    process.wait_for_line("tick")
    process.freeze()
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, what="the stop")
    ticks = process.output.count("tick")
    process.thaw()
    process.wait_for_line("tick", nth=ticks + 10)


def test_memory_counts_the_children_too(start: Start) -> None:
    family = start(python(PARENT))
    family.wait_for_line("ready")
    alone = psutil.Process(family.pid).memory_info().rss
    assert alone > 1_000_000
    assert family.rss > alone + 1_000_000


def test_the_environment_is_bare(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDINGS_LEAK", "yes")
    process = start(python("import os; print(sorted(os.environ))", TIDINGS_GIVEN="1"))
    process.wait()
    names = process.wait_for_line(r"\[.*\]")[0]
    assert "TIDINGS_GIVEN" in names
    assert "PATH" in names
    assert "TIDINGS_LEAK" not in names


def test_tidings_is_the_command_line_of_the_product() -> None:
    process = tidings("run", "--all", TIDINGS_DATABASE="x")
    assert process.argv == [sys.executable, "-m", "tidings", "run", "--all"]
    assert set(process.env) <= {"PATH", "HOME", "LANG", "TIDINGS_DATABASE"}


def test_orphans_are_ended_with_the_test() -> None:
    fixture = processes()
    process = next(fixture)(python(PARENT))
    orphan = int(process.wait_for_line(r"child (\d+)")[1])
    process.wait_for_line("ready")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not gone(orphan)
    next(fixture, None)
    assert gone(orphan)


def test_processes_and_their_children_die_with_the_test_process(start: Start) -> None:
    script = f"""
import sys
from tests.support.processes import Process
family = Process([sys.executable, "-c", {PARENT!r}]).start()
print("child", family.wait_for_line(r"child (\\d+)")[1], "parent", family.pid, flush=True)
family.wait(60)
"""
    tests = start(Process([sys.executable, "-c", script], cwd=ROOT))
    pids = [int(pid) for pid in tests.wait_for_line(r"child (\d+) parent (\d+)").groups()]
    os.kill(tests.pid, signal.SIGKILL)
    wait_until(lambda: all(map(gone, pids)), what="the family to be gone")


async def test_waiting_too_long_names_the_fact_and_the_last_answer() -> None:
    with pytest.raises(AssertionError, match=r"waited 0\.01 s for the moon; the last answer was 0"):
        wait_until(lambda: 0, timeout=0.01, what="the moon")
    with pytest.raises(AssertionError, match=r"waited 0\.01 s for the moon; the last answer was \[\]"):
        await eventually(list, timeout=0.01, what="the moon")


async def test_waiting_returns_the_first_true_answer() -> None:
    answers = iter([0, 0, 7])

    async def answer() -> int:
        return next(answers)

    assert await eventually(answer) == 7
