"""`sagas` and `dead-letters` as processes: what waits, what was given up, and how it is sent again."""

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.roles.dead_letters.scene import EVERYTHING, Scene
from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.roles.dead_letters.requeueing import begin, requeue

pytestmark = pytest.mark.slow


@pytest.fixture
async def scene(engine: Database) -> Scene:
    return Scene(engine, await engine.open("dead_letter_operator"))


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


async def test_sagas_are_listed_by_what_an_index_serves(scene: Scene, shell: Shell) -> None:
    assert "no such saga" in shell.says("sagas", "list")
    one, other = await scene.subscription(), await scene.subscription()
    done = await scene.ended(one, 3)
    waiting = await scene.ended(other, 3, "Pending")
    assert ids(shell.json("sagas", "list", "--limit", "4")) == [*reversed(waiting), done[2]]
    assert f"--before {done[2]}" in shell.says("sagas", "list", "--limit", "4")
    assert ids(shell.json("sagas", "list", "--before", str(done[2]))) == [done[1], done[0]]
    event = shell.json("sagas", "show", str(done[0]))["event_id"]
    assert ids(shell.json("sagas", "list", "--event", str(event))) == [done[0]]
    assert ids(shell.json("sagas", "list", "--status", "Pending", "--limit", "2")) == waiting[:2]
    assert f"--after {waiting[1]}" in shell.says("sagas", "list", "--status", "Pending", "--limit", "2")
    assert ids(shell.json("sagas", "list", "--status", "Pending", "--after", str(waiting[1]))) == waiting[2:]
    of_other = ("--status", "Pending", "--subscription")
    assert ids(shell.json("sagas", "list", *of_other, str(other))) == waiting
    assert shell.json("sagas", "list", *of_other, str(one)) == []


def test_what_no_index_serves_is_refused_with_what_to_do(shell: Shell) -> None:
    assert "dead-letters list" in shell.says("sagas", "list", "--status", "DeadLettered", exit=2)
    assert "--status" in shell.says("sagas", "list", "--subscription", "1", exit=2)
    assert "Choose one" in shell.says("sagas", "list", "--event", "1", "--status", "Pending", exit=2)


async def test_a_saga_is_shown_with_its_attempts(scene: Scene, shell: Shell) -> None:
    (saga,) = await scene.ended(await scene.subscription(), 1, "InProgress")
    assert "No attempt" in shell.says("sagas", "show", str(saga))
    await scene.sql(
        "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no, status, error_code,"
        " response_status, response_excerpt, worker_id)"
        f" VALUES ({saga}, 1, '2026-01-01', 1, 'Failed', 'http_500', 500, 'oops', 'w1')"
    )
    (job,) = shell.json("sagas", "show", str(saga))["jobs"]
    assert (job["attempt_no"], job["response_status"], job["response_excerpt"]) == (1, 500, "oops")
    shown = shell.says("sagas", "show", str(saga))
    assert "http_500" in shown
    assert "w1" in shown
    assert "There is no saga 4711" in shell.says("sagas", "show", "4711", exit=1)


async def test_completed_sagas_are_resent_and_others_refused(scene: Scene, shell: Shell) -> None:
    subscription = await scene.subscription()
    (done,) = await scene.ended(subscription)
    (waiting,) = await scene.ended(subscription, status="Pending")
    (told,) = shell.json("sagas", "resend", str(done))
    assert (told["outcome"], told["already_requeued"], told["generation"]) == ("started", False, 1)
    (again,) = shell.json("sagas", "resend", str(done))
    assert (again["saga_id"], again["already_requeued"]) == (told["saga_id"], True)
    assert "not completed" in shell.says("sagas", "resend", str(waiting), exit=1)
    assert "none with this id" in shell.says("sagas", "resend", "4711", exit=1)


async def test_dead_letters_are_listed_shown_and_requeued(scene: Scene, shell: Shell) -> None:
    assert "no dead letter" in shell.says("dead-letters", "list")
    one, other = await scene.subscription(), await scene.subscription()
    letters = await scene.letters(one, 3) + await scene.letters(other, 1)
    assert ids(shell.json("dead-letters", "list")) == [*reversed(letters)]
    assert ids(shell.json("dead-letters", "list", "--subscription", str(one), "--limit", "2")) == [
        letters[2],
        letters[1],
    ]
    page = ("--subscription", str(one), "--before", str(letters[1]))
    assert ids(shell.json("dead-letters", "list", *page)) == [letters[0]]
    (told,) = shell.json("dead-letters", "requeue", str(letters[0]))
    assert told["outcome"] == "started"
    shown = shell.json("dead-letters", "show", str(letters[0]))
    assert (shown["payload_snapshot"], shown["requeued_as"], shown["requeued_status"]) == (
        {"a": 1},
        told["saga_id"],
        "Pending",
    )
    assert "was sent again before" in shell.says("dead-letters", "requeue", str(letters[0]))
    assert "There is no dead letter 4711" in shell.says("dead-letters", "show", "4711", exit=1)
    (audit,) = {actor.split(":")[0] for actor, _, _ in await scene.audited()}
    assert audit == "cli"


async def test_a_refused_requeue_says_why_and_ends_with_1(scene: Scene, shell: Shell) -> None:
    (letter,) = await scene.letters(await scene.subscription(active=False))
    assert "its subscription is inactive" in shell.says("dead-letters", "requeue", str(letter), exit=1)


async def test_a_requeue_by_filter_is_looked_at_first_and_must_be_confirmed(scene: Scene, shell: Shell) -> None:
    one, silent = await scene.subscription(), await scene.subscription(verified=False)
    await scene.letters(one, 3, "timeout")
    await scene.letters(one, 2, "http_500")
    await scene.letters(silent, 1, "timeout")
    said = shell.says("dead-letters", "requeue", "--error", "timeout", exit=1)
    assert "4 dead letters" in said
    assert f"subscription {silent} is not verified" in said
    assert shell.json("dead-letters", "requeues") == []
    done = shell.json("dead-letters", "requeue", "--error", "timeout", "--yes", "--rate", "1000")
    assert (done["status"], done["total"], done["requeued"], done["already"], done["refused"]) == ("done", 4, 3, 0, 1)
    (listed,) = shell.json("dead-letters", "requeues")
    assert (listed["status"], listed["filter"]["error_code"], listed["rate"]) == ("done", "timeout", 1000)
    assert "4 of 4" in shell.says("dead-letters", "requeues")
    assert "There is none of these" in shell.says("dead-letters", "requeue", "--error", "none", "--yes")


def test_which_dead_letters_must_be_said(shell: Shell) -> None:
    assert "Say which" in shell.says("dead-letters", "requeue", exit=2)
    assert "Say which" in shell.says("dead-letters", "requeue", "1", "--all", exit=2)
    assert "is no moment" in shell.says("dead-letters", "requeue", "--since", "then", exit=2)


async def test_a_requeue_that_is_interrupted_can_be_resumed_or_cancelled(
    scene: Scene, shell: Shell, start: Callable[[Process], Process]
) -> None:
    """Ctrl-C leaves it where it is; its rate is the pace at which it goes."""
    await scene.letters(await scene.subscription(), 400)
    process = start(tidings("dead-letters", "requeue", "--all", "--yes", "--rate", "10", **shell.environment))
    await eventually(scene.next_generation, timeout=30)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(30) == 130, process.output
    (stands,) = shell.json("dead-letters", "requeues")
    assert stands["status"] == "running"
    assert 0 < stands["started_count"] < 400
    assert f"dead-letters resume {stands['id']}" in process.output
    await scene.sql("UPDATE mass_requeues SET rate = 10000")
    assert shell.json("dead-letters", "resume", str(stands["id"]))["requeued"] == 400
    assert len(await scene.next_generation()) == 400
    assert "is done" in shell.says("dead-letters", "cancel", str(stands["id"]))
    assert "no mass requeue 4711" in shell.says("dead-letters", "resume", "4711", exit=1)


async def test_a_cancelled_requeue_is_not_resumed(scene: Scene, shell: Shell) -> None:
    await scene.letters(await scene.subscription(), 2)
    mass_id = await begin(scene.engine, EVERYTHING, 1, "ann")
    assert "is cancelled" in shell.says("dead-letters", "cancel", str(mass_id))
    assert "is cancelled: 0 requeued" in shell.says("dead-letters", "resume", str(mass_id), exit=1)
    assert await scene.next_generation() == []


@pytest.mark.parametrize("columns", ["80", "120"])
async def test_the_lists_fit_the_terminal(scene: Scene, shell: Shell, columns: str) -> None:
    letters = await scene.letters(await scene.subscription(), 2, "connect_error")
    await requeue(scene.engine, letters[:1], "ann")
    await begin(scene.engine, EVERYTHING, 100, "cli:somebody")
    commands = {("dead-letters", "list"): 3, ("sagas", "list"): 4, ("dead-letters", "requeues"): 2}
    for command, rows in commands.items():
        lines = shell.says(*command, COLUMNS=columns).splitlines()
        assert max(map(len, lines)) <= int(columns)
        assert len(lines) == rows
