"""Finished tasks go to the history after a while; each is in one of the two tables at every commit. Seed 003."""

import asyncio
import datetime
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.queue import HISTORY, TASKS, Queue
from tests.support.sessions import connect
from tidings.errors import StatementDenied
from tidings.roles.archiver.archiver import Archived, Archiver
from tidings.telemetry.notices import Notice, RowSetAside, TasksArchived

DAY = 86_400.0


async def archiver(queue: Queue, archive_after: float = DAY, **options: Any) -> Archiver:
    return Archiver(await queue.database.open("task_archiver"), archive_after, **options)


async def test_a_finished_task_goes_to_the_history_as_it_was(queue: Queue) -> None:
    """Seed 003, archiving: both final statuses, moved to sys_pending_tasks_history and deleted from the queue."""
    tasks = [
        *await queue.ended(status=2, result_msg="'OK'", worker_id="'w1'", version="7"),
        *await queue.ended(status=4, result_msg="'Max retries exceeded: no'", retry_count="3", priority="1"),
    ]
    before = await queue.rows()
    assert await (await archiver(queue)).step() == Archived(moved=2)
    assert await queue.rows() == []
    archived = await queue.rows(HISTORY)
    now = datetime.datetime.now(datetime.UTC)
    assert all(abs(now - row.pop("archived_at")) < datetime.timedelta(minutes=5) for row in archived)
    assert archived == before
    assert [row["id"] for row in archived] == tasks


async def test_what_has_not_ended_is_never_touched_however_old(queue: Queue) -> None:
    for status in (0, 1, 3):
        await queue.add(status=status, updated_at="'2020-01-01'", next_run_time="'2020-01-01'")
    before = await queue.rows()
    assert not (await (await archiver(queue, 0)).step()).did_work
    assert await queue.rows() == before


async def test_a_task_stays_until_its_time_by_the_clock_of_the_database(queue: Queue) -> None:
    (task,) = await queue.ended(updated_at=Words(queue.database).ago(3600))
    assert await (await archiver(queue, 3700)).step() == Archived()
    assert await queue.where() == {task: "queue"}
    assert await (await archiver(queue, 3500)).step() == Archived(moved=1)


async def test_a_step_moves_a_small_batch_and_says_whether_there_was_any(queue: Queue, told: list[Notice]) -> None:
    await queue.ended(5, status=2)
    await queue.ended(2, status=4)
    one = await archiver(queue, batch=3)
    assert [await one.step() for _ in range(4)] == [*map(Archived, (3, 3, 1)), Archived()]
    assert told == [TasksArchived(3), TasksArchived(3), TasksArchived(1)]
    assert set((await queue.where()).values()) == {"history"}


async def test_the_key_is_free_afterwards(queue: Queue) -> None:
    """Ruling 13: "After archiving the key is free"; the same one may be archived again and again."""
    for _ in range(2):
        await queue.ended(biz_key="'same'")
        assert (await (await archiver(queue)).step()).moved == 1
    assert [row["biz_key"] for row in await queue.rows(HISTORY)] == ["same", "same"]


@pytest.mark.slow
async def test_several_archivers_at_once_move_each_task_once(queue: Queue) -> None:
    tasks = await queue.ended(1000)
    archivers = [await archiver(queue, batch=40) for _ in range(4)]

    async def until_nothing_is_left(one: Archiver) -> int:
        moved = 0
        while (done := await one.step()).did_work:
            assert done.refused == 0
            moved += done.moved
        return moved

    counts = await asyncio.gather(*(until_nothing_is_left(one) for one in archivers))
    assert await queue.where() == dict.fromkeys(tasks, "history")
    assert sum(counts) == 1000


async def test_a_task_that_somebody_holds_is_passed_over(queue: Queue, engine: Database) -> None:
    held, free = await queue.ended(2)
    somebody = await connect(engine.url("schema_owner"))
    await somebody.run("BEGIN")
    await somebody.run(f"SELECT id FROM {TASKS} WHERE id = {held} FOR UPDATE")
    assert await (await archiver(queue)).step() == Archived(moved=1)
    assert await queue.where() == {held: "queue", free: "history"}
    await somebody.run("ROLLBACK")
    await somebody.close()
    assert await (await archiver(queue)).step() == Archived(moved=1)


async def test_a_task_that_the_database_refuses_stops_nobody_else(
    queue: Queue, engine: Database, told: list[Notice]
) -> None:
    """It is set aside and told once; its neighbours go on."""
    tasks = await queue.ended(7)
    bad = tasks[3]
    await engine.sql(f"INSERT INTO {HISTORY} (id, biz_type, biz_key) VALUES ({bad}, 'X', 'y')")
    one = await archiver(queue, batch=4)
    done = [await one.step() for _ in range(4)]
    assert sum(step.moved for step in done) == 6
    assert [step.refused for step in done] == [1, 0, 0, 0]
    assert not done[-1].did_work
    assert [(notice.role, notice.row) for notice in told if isinstance(notice, RowSetAside)] == [
        ("archiver", f"task:{bad}")
    ]
    assert await queue.ids() == [bad]


async def test_without_the_right_nothing_is_set_aside(queue: Queue, engine: Database) -> None:
    await queue.ended(3)
    wrong = Archiver(await engine.open("task_rescuer"), DAY)
    with pytest.raises(StatementDenied):
        await wrong.step()
    assert len(await queue.ids()) == 3
