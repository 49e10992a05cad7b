"""`tasks` as processes: submitting, looking, and what a person can do about a task."""

import getpass
from collections.abc import Callable

import pytest

from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.queue import Queue
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def queue(engine: Database) -> Queue:
    return Queue(engine)


async def test_a_task_is_submitted_shown_and_known_again(queue: Queue, shell: Shell) -> None:
    text = '{"to":  "ü"}'
    when = ("--priority", "1", "--run-at", "2099-01-31T10:00:00Z")
    first = shell.json("tasks", "submit", "EMAIL_SEND", "o-1", text, *when)
    assert first == {"id": first["id"], "status": 0, "duplicate": False, "payload_differs": False}
    shown = shell.json("tasks", "show", str(first["id"]))
    assert (shown["payload"], shown["priority"], shown["archived_at"]) == ({"to": "ü"}, 1, None)
    assert shown["next_run_time"].startswith("2099-01-31T10:00:00")
    assert (await queue.row(first["id"]))["payload"] == text
    assert "duplicate: it was there before, pending, with another payload" in shell.says(
        "tasks", "submit", "EMAIL_SEND", "o-1", "1"
    )
    assert "0 to 127" in shell.says("tasks", "submit", "A", "1", "--priority", "128", exit=2)
    later = shell.json("tasks", "submit", "A", "2", "--run-at", "2h")
    row = await queue.row(later["id"])
    assert 7000 < (row["next_run_time"] - row["created_at"]).total_seconds() < 7300
    assert await queue.ids() == [first["id"], later["id"]]


async def test_a_finished_task_is_replaced_when_asked_and_both_are_listed(queue: Queue, shell: Shell) -> None:
    (old,) = await queue.ended(biz_key="'k'")
    new = shell.json("tasks", "submit", "MAIL", "k", "--replace")
    assert await queue.where() == {old: "history", new["id"]: "queue"}
    listed = shell.says("tasks", "list", "--limit", "1")
    assert "0 pending" in listed
    assert f"--before {new['id']}" in listed
    (archived,) = shell.json("tasks", "list", "--archived", "--type", "MAIL")
    assert (archived["id"], archived["status"]) == (old, 2)
    assert "payload" not in archived
    assert "2 success" in shell.says("tasks", "show", str(old))


def test_what_no_index_serves_is_refused_with_what_to_do(shell: Shell) -> None:
    assert "Choose one" in shell.says("tasks", "list", "--status", "2", "--archived", exit=2)
    assert "--type" in shell.says("tasks", "list", "--key", "k", exit=2)
    assert "no task 7" in shell.says("tasks", "show", "7", exit=1)


async def test_tasks_are_retried_and_cancelled_in_a_persons_name(queue: Queue, shell: Shell) -> None:
    (failed,) = await queue.ended(status=4)
    (waiting,) = await queue.add()
    (running,) = await queue.add(status=1)
    (archived,) = await queue.ended()
    await queue.archive(archived)
    done = shell.json("tasks", "retry", str(failed), str(archived), str(waiting), exit=1)
    assert [one["outcome"] for one in done] == ["retried", "submitted_anew", "not_failed"]
    assert "another task has its business key" in shell.says("tasks", "retry", str(archived), exit=1)
    assert "will not be run" in shell.says("tasks", "cancel", str(waiting), "--reason", "not needed")
    assert "a worker is running it" in shell.says("tasks", "cancel", str(running), exit=1)
    person = f"cli:{getpass.getuser()}"
    assert (await queue.row(waiting))["result_msg"] == f"Cancelled by {person}: not needed"
    shown = shell.json("tasks", "show", str(waiting))
    assert [(one["actor"], one["action"], one["detail"]) for one in shown["audit"]] == [
        (person, "task.cancelled", {"reason": "not needed"})
    ]
    assert "task.retried" in shell.says("tasks", "show", str(failed))


async def test_the_archiver_runs_as_a_process_of_its_own(
    engine: Database, queue: Queue, start: Callable[[Process], Process]
) -> None:
    old = await queue.ended(3)
    (fresh,) = await queue.add(status=2)
    process = start(tidings("run", "archiver", **engine.environment()))
    expected = {**dict.fromkeys(old, "history"), fresh: "queue"}

    async def are_archived() -> bool:
        return await queue.where() == expected

    await eventually(are_archived, timeout=40, what="the old ones in the history")
    process.terminate()
    assert process.wait(30) == 0, process.output
