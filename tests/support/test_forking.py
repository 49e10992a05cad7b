"""A process that was forked from one with everything loaded is like one that was started."""

import json
import os
import signal
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.forking import Forked, can_be_forked
from tests.support.processes import Process

SAMPLE = """
    import json, os, random, signal, sys, threading
    told = {
        "pid": os.getpid(), "session": os.getsid(0), "folder": os.getcwd(), "arguments": sys.argv[1:],
        "environment": dict(os.environ), "name": __name__, "chance": random.random(),
        "threads": threading.active_count(),
        "interrupts": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    }
    print(json.dumps(told))
    match sys.argv[1]:
        case "fail":
            raise ValueError("as asked")
        case "end":
            sys.exit("with a word")
        case "wait":
            sys.stdout.flush()
            signal.pause()
"""


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str], Process]:
    (tmp_path / "sample.py").write_text(textwrap.dedent(SAMPLE))
    return lambda word: Process([sys.executable, "-m", "sample", word], {"MINE": word}, tmp_path)


def told(process: Process) -> dict[str, object]:
    return dict(json.loads(process.wait_for_line(r"^\{.*")[0]))


def test_it_has_an_environment_a_folder_a_session_and_chance_of_its_own(
    start: Callable[[Process], Process], sample: Callable[[str], Process], tmp_path: Path
) -> None:
    first, second = start(sample("one")), start(sample("two"))
    one, two = told(first), told(second)
    assert (first.wait(), second.wait()) == (0, 0)
    assert one["pid"] == one["session"] == first.pid
    assert (one["folder"], one["arguments"], one["name"]) == (str(tmp_path), ["one"], "__main__")
    assert one["environment"] == first.env
    assert one["interrupts"]
    assert one["threads"] == 1
    assert one["chance"] != two["chance"]


def test_it_ends_as_python_ends(start: Callable[[Process], Process], sample: Callable[[str], Process]) -> None:
    failed, ended = start(sample("fail")), start(sample("end"))
    assert (failed.wait(), ended.wait()) == (1, 1)
    failed.wait_for_line("ValueError: as asked")
    ended.wait_for_line("^with a word$")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_takes_signals(
    start: Callable[[Process], Process], sample: Callable[[str], Process], number: signal.Signals
) -> None:
    process = start(sample("wait"))
    told(process)
    assert process.is_running()
    os.kill(process.pid, number)
    assert process.wait() == -number
    assert not process.is_running()


def test_nobody_waits_for_ever(sample: Callable[[str], Process], start: Callable[[Process], Process]) -> None:
    process = start(sample("wait"))
    with pytest.raises(AssertionError, match="still running"):
        process.wait(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL


def test_what_speaks_about_python_itself_is_started_anew() -> None:
    assert can_be_forked([sys.executable, "-m", "tidings"], {"PATH": "/bin"})
    assert not can_be_forked([sys.executable, "-m", "tidings"], {"PYTHONHASHSEED": "1"})
    assert not can_be_forked([sys.executable, "-c", "pass"], {})


def test_both_streams_are_kept_apart(tmp_path: Path) -> None:
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        argv = [sys.executable, "-m", "tidings", "nonsense"]
        code = Forked(argv, dict(os.environ), tmp_path, out.fileno(), err.fileno()).wait(30)
    assert code == 2
    assert (tmp_path / "out").read_text() == ""
    assert "nonsense" in (tmp_path / "err").read_text()
