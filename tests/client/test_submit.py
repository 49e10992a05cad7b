"""`tidings.submit_task` in the caller's own transaction, the same through every driver. Ruling 13."""

import datetime
from collections.abc import AsyncIterator
from typing import Any

import pytest

import tidings
from tests.client.callers import ENGINE_OF, Caller, calling
from tests.client.test_publish import ODD
from tests.support.database import Database
from tests.support.queue import HISTORY, Queue
from tidings.model.submission import Submitted
from tidings.model.task import TaskStatus

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("driver", ENGINE_OF)]

LATER = datetime.datetime(2099, 1, 31, 10, 0, 0, 5, datetime.timezone(datetime.timedelta(hours=2)))


@pytest.fixture
async def caller(driver: str, engine: Database) -> AsyncIterator[Caller]:
    """An application that may submit tasks and nothing else."""
    async with calling(driver, engine.url("task_producer")) as caller:
        yield caller


@pytest.fixture
def queue(engine: Database) -> Queue:
    return Queue(engine)


async def test_a_task_exists_when_its_transaction_commits(caller: Caller, queue: Queue) -> None:
    submitted = await caller.do(
        lambda c: tidings.submit_task(
            c,
            "EMAIL_SEND",
            "it's 100% \\ ü😀",
            ODD,
            priority=0,
            run_at=LATER,
            max_retries=0,
            correlation_id="c-1",
        )
    )
    assert submitted == Submitted(submitted.id, TaskStatus.PENDING)
    assert await queue.rows() == []
    await caller.commit()
    (task,) = await queue.rows()
    assert task.pop("created_at") == task.pop("updated_at")
    assert task == {
        "id": submitted.id,
        "biz_type": "EMAIL_SEND",
        "biz_key": "it's 100% \\ ü😀",
        "status": 0,
        "priority": 0,
        "payload": ODD,
        "result_msg": None,
        "retry_count": 0,
        "max_retries": 0,
        "next_run_time": LATER,
        "version": 0,
        "worker_id": None,
        "correlation_id": "c-1",
    }


async def test_a_task_is_gone_when_its_transaction_rolls_back(caller: Caller, queue: Queue) -> None:
    await caller.do(lambda c: tidings.submit_task(c, "A", "1", {"n": 1}))
    await caller.rollback()
    again = await caller.do(lambda c: tidings.submit_task(c, "A", "1", {"n": 2}))
    assert not again.duplicate
    await caller.commit()
    (task,) = await queue.rows()
    assert (task["payload"], task["priority"], task["max_retries"]) == ('{"n":2}', 10, 3)
    assert task["next_run_time"] == task["created_at"]
    assert task["correlation_id"]


async def test_many_are_submitted_at_once_each_with_its_own_id(caller: Caller, queue: Queue) -> None:
    given: list[Any] = [
        {"biz_type": "A", "biz_key": f"x{n * 7 % 40}", "payload": n, **({"run_at": LATER} if n % 2 else {})}
        for n in range(40)
    ]
    given.append(tidings.NewTask("A", "x7", [1, None, "é"]))
    submitted = await caller.do(lambda c: tidings.submit_tasks(c, given))
    await caller.commit()
    payloads = {task["id"]: task["payload"] for task in await queue.rows()}
    assert len(payloads) == 40
    assert [payloads[one.id] for one in submitted[:40]] == [str(n) for n in range(40)]
    assert submitted[40] == Submitted(submitted[1].id, duplicate=True, payload_differs=True)
    due = {task["payload"]: task["next_run_time"] == LATER for task in await queue.rows()}
    assert due == {str(n): bool(n % 2) for n in range(40)}


async def test_the_same_key_again_is_the_first_task(caller: Caller, queue: Queue, engine: Database) -> None:
    """Ruling 13: "whatever its status, a submit returns it, with its status"."""

    async def submit(payload: Any, biz_type: str = "A") -> Any:
        return await caller.do(lambda c: tidings.submit_task(c, biz_type, "ü😀", payload))

    first = await submit('{"n": 1}')
    assert await submit('{"n": 1}') == Submitted(first.id, duplicate=True)
    await caller.commit()
    assert await submit('{"n":1}') == Submitted(first.id, duplicate=True, payload_differs=True)
    assert not (await submit('{"n":1}', "a")).duplicate
    await caller.commit()
    for status in (1, 2):
        await engine.sql(f"UPDATE sys_pending_tasks SET status = {status} WHERE id = {first.id}")
        assert await submit('{"n": 1}') == Submitted(first.id, TaskStatus(status), duplicate=True)
        await caller.commit()
    await queue.archive(first.id)
    assert not (await submit('{"n": 1}')).duplicate
    await caller.commit()
    assert (len(await queue.ids()), await queue.ids(HISTORY)) == (2, [first.id])


async def test_a_refused_task_leaves_the_transaction_as_it_was(caller: Caller, queue: Queue) -> None:
    await caller.do(lambda c: tidings.submit_task(c, "KEPT", "1", {}))
    with pytest.raises(tidings.TaskRefused):
        await caller.do(lambda c: tidings.submit_task(c, "NOT KEPT", "1", {}))
    with pytest.raises(tidings.TaskRefused) as refused:
        await caller.do(
            lambda c: tidings.submit_tasks(
                c, [tidings.NewTask("A", "1", {}), {"biz_type": "A", "biz_key": "", "payload": 1}]
            )
        )
    assert refused.value.field == "tasks[1].biz_key"
    await caller.commit()
    assert [task["biz_type"] for task in await queue.rows()] == ["KEPT"]
    assert await caller.do(lambda c: tidings.submit_tasks(c, [])) == []


async def test_replacing_a_finished_task_archives_it_and_makes_a_new_one(caller: Caller, queue: Queue) -> None:
    """Ruling 13: "Option `replace` on a finished one archives it and inserts anew"; in the caller's transaction."""
    done, failed, waiting = [
        *await queue.ended(status=2, biz_key="'done'"),
        *await queue.ended(status=4, biz_key="'failed'"),
        *await queue.add(biz_key="'waiting'"),
    ]
    before = {row["id"]: row for row in await queue.rows()}

    async def replace() -> Any:
        tasks = [tidings.NewTask("MAIL", key, {"new": key}) for key in ("done", "failed", "waiting", "free")]
        return await caller.do(lambda c: tidings.submit_tasks(c, tasks, replace=True))

    await replace()
    await caller.rollback()
    assert await queue.where() == {done: "queue", failed: "queue", waiting: "queue"}
    first, second, third, fourth = await replace()
    await caller.commit()
    assert third == Submitted(waiting, TaskStatus.PENDING, duplicate=True, payload_differs=True)
    new = {one.id for one in (first, second, fourth)}
    assert len(new) == 3
    assert not new & before.keys()
    assert not any(one.duplicate for one in (first, second, fourth))
    assert await queue.where() == {
        done: "history",
        failed: "history",
        waiting: "queue",
        **dict.fromkeys(sorted(new), "queue"),
    }
    for archived in await queue.rows(HISTORY):
        assert archived.pop("archived_at") is not None
        assert archived == before[archived["id"]]
    assert (await queue.row(first.id))["payload"] == '{"new":"done"}'
    again = await caller.do(lambda c: tidings.submit_task(c, "MAIL", "done", "1", replace=True))
    assert again == Submitted(first.id, duplicate=True, payload_differs=True)
