"""What a person does with tasks: retry what failed for good, also from the history, and cancel what waits; audited."""

import asyncio

import pytest

from tests.support.database import Database
from tests.support.queue import HISTORY, Queue
from tidings.db.engine import Engine
from tidings.decisions.claiming import Lane
from tidings.errors import InputRefused, TaskRefused
from tidings.model.task import TaskStatus
from tidings.model.task_command import TaskCommanded, TaskCommandOutcome
from tidings.roles.task_worker.operations import TaskWorkerOperations
from tidings.roles.tasks.commands import MOST_AT_ONCE, cancel, retry

Outcome = TaskCommandOutcome


@pytest.fixture
async def operator(engine: Database) -> Engine:
    return await engine.open("dead_letter_operator", size=4)


async def test_a_task_that_failed_for_good_starts_anew(queue: Queue, operator: Engine) -> None:
    """Ruling 8: "every move adds 1 to version", "4 only to 0 by an audited retry"."""
    (task,) = await queue.ended(
        status=4, retry_count="3", version="9", next_run_time="'2099-01-01'", result_msg="'no'", worker_id="'w1'"
    )
    before = await queue.row(task)
    done = await retry(operator, [task], "cli:ann")
    assert done == [TaskCommanded(task, Outcome.RETRIED, TaskStatus.FAIL_TERMINAL, task)]
    after = await queue.row(task)
    assert (after["status"], after["retry_count"], after["version"]) == (0, 0, 10)
    assert after["next_run_time"] == after["updated_at"] > before["updated_at"]
    changed = {"status", "retry_count", "version", "next_run_time", "updated_at"}
    assert {name for name in after if after[name] != before[name]} == changed
    assert await queue.audited() == [("cli:ann", "task.retried", f"task:{task}")]


async def test_what_has_not_failed_for_good_is_not_retried(queue: Queue, operator: Engine) -> None:
    tasks = [(await queue.add(status=status))[0] for status in (0, 1, 2, 3)]
    before = await queue.rows()
    done = await retry(operator, [*tasks, 999], "cli:ann")
    assert [(one.outcome, one.status) for one in done] == [
        *((Outcome.NOT_FAILED, TaskStatus(status)) for status in (0, 1, 2, 3)),
        (Outcome.NOT_FOUND, None),
    ]
    assert await queue.rows() == before
    assert await queue.audited() == []


async def test_an_archived_task_is_submitted_anew_under_its_key(queue: Queue, operator: Engine) -> None:
    """From status 4 and from history; the archived one stays what it was."""
    old = [
        *await queue.ended(status=4, priority="1", max_retries="7", correlation_id="'c-1'", retry_count="7"),
        *await queue.ended(status=2),
    ]
    await queue.archive(*old)
    history = await queue.rows(HISTORY)
    done = await retry(operator, old, "cli:ann")
    assert [one.outcome for one in done] == [Outcome.SUBMITTED_ANEW] * 2
    assert [one.task_id for one in done] == await queue.ids()
    first = await queue.row(done[0].task_id or 0)
    kept = ("biz_type", "biz_key", "payload", "priority", "max_retries", "correlation_id")
    assert [first[name] for name in kept] == [history[0][name] for name in kept]
    assert (first["status"], first["retry_count"], first["version"], first["result_msg"]) == (0, 0, 0, None)
    assert first["next_run_time"] == first["created_at"]
    assert await queue.rows(HISTORY) == history
    assert await queue.audited() == [("cli:ann", "task.retried", f"task:{task}") for task in old]


async def test_an_archived_task_whose_key_is_taken_is_not(queue: Queue, operator: Engine) -> None:
    old = [*await queue.ended(biz_key="'same'")]
    await queue.archive(*old)
    old += await queue.ended(biz_key="'same'", payload="'2'")
    await queue.archive(*old[1:])
    (taken,) = await queue.ended(biz_key="'taken'")
    await queue.archive(taken)
    (now,) = await queue.add(biz_key="'taken'")
    done = await retry(operator, [old[1], old[0], taken], "cli:ann")
    assert [one.outcome for one in done] == [Outcome.SUBMITTED_ANEW, Outcome.KEY_TAKEN, Outcome.KEY_TAKEN]
    assert await queue.ids() == [now, done[0].task_id]
    assert (await queue.row(done[0].task_id or 0))["payload"] == "2"
    assert await queue.audited() == [("cli:ann", "task.retried", f"task:{old[1]}")]


async def test_a_task_that_waits_is_cancelled_with_who_and_why(queue: Queue, operator: Engine) -> None:
    tasks = [*await queue.add(version="4"), *await queue.add(status=3, result_msg="'no'", retry_count="2")]
    done = await cancel(operator, tasks, "sent by hand", "cli:ann")
    assert [(one.outcome, one.status) for one in done] == [
        (Outcome.CANCELLED, TaskStatus.PENDING),
        (Outcome.CANCELLED, TaskStatus.FAIL_RETRY),
    ]
    rows = await queue.rows()
    assert [(row["status"], row["result_msg"]) for row in rows] == [(4, "Cancelled by cli:ann: sent by hand")] * 2
    assert [(row["version"], row["retry_count"]) for row in rows] == [(5, 0), (1, 2)]
    assert all(row["updated_at"] > row["created_at"] for row in rows)
    assert await queue.audited() == [("cli:ann", "task.cancelled", f"task:{task}") for task in tasks]
    assert [one.outcome for one in await retry(operator, tasks, "cli:ann")] == [Outcome.RETRIED] * 2


async def test_what_runs_or_has_ended_is_not_cancelled(queue: Queue, operator: Engine) -> None:
    tasks = [(await queue.add(status=status))[0] for status in (1, 2, 4)]
    (archived,) = await queue.ended()
    await queue.archive(archived)
    before = await queue.rows()
    done = await cancel(operator, [*tasks, archived, 999], "", "cli:ann")
    assert [one.outcome for one in done] == [
        Outcome.UNDER_WAY,
        Outcome.ENDED,
        Outcome.ENDED,
        Outcome.ENDED,
        Outcome.NOT_FOUND,
    ]
    assert await queue.rows() == before
    assert await queue.audited() == []


async def test_a_command_and_a_claim_at_once_leave_one_of_them(
    queue: Queue, operator: Engine, engine: Database
) -> None:
    """A worker has read it before it was cancelled, and claims it afterwards."""
    (task,) = await queue.add()
    worker = await engine.open("task_worker")
    lanes = [Lane("MAIL", priority=10, room=10)]
    seen = await TaskWorkerOperations.step(worker, lambda one: one.candidates(lanes, only_free=False))
    assert [one.id for one in seen] == [task]
    await cancel(operator, [task], "", "cli:ann")
    assert await TaskWorkerOperations.step(worker, lambda one: one.claim(seen, "w")) == []
    assert (await queue.row(task))["status"] == 4


async def test_the_same_retry_twice_at_once_is_one(queue: Queue, operator: Engine) -> None:
    tasks = await queue.ended(20, status=4)
    (archived,) = await queue.ended()
    await queue.archive(archived)
    both = await asyncio.gather(*(retry(operator, [*tasks, archived], "cli:ann") for _ in range(2)))
    for one, other in zip(*both, strict=True):
        assert {one.outcome, other.outcome} in (
            {Outcome.RETRIED, Outcome.NOT_FAILED},
            {Outcome.SUBMITTED_ANEW, Outcome.KEY_TAKEN},
        )
    assert all(row["version"] <= 1 for row in await queue.rows())
    assert len(await queue.audited()) == 21


async def test_what_can_not_be_asked_changes_nothing(queue: Queue, operator: Engine) -> None:
    (task,) = await queue.add()
    with pytest.raises(TaskRefused):
        await cancel(operator, [task], "a\nb", "cli:ann")
    for ids in (range(0), range(1, MOST_AT_ONCE + 2)):
        with pytest.raises(InputRefused) as refused:
            await retry(operator, ids, "cli:ann")
        assert refused.value.field == "ids"
    assert (await queue.row(task))["status"] == 0
