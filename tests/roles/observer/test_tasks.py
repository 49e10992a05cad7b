"""Tasks are listed in pages, each along an index, in the queue and in the history; one is shown wherever it is."""

from collections.abc import Sequence

import pytest

from tests.support.database import Database
from tests.support.queue import Queue
from tidings.errors import NotFound
from tidings.model.task import TaskStatus
from tidings.roles.observer.listing import Shown
from tidings.roles.observer.tasks import TaskObserver


def ids(rows: Sequence[Shown]) -> list[int]:
    return [row["id"] for row in rows]


async def test_the_queue_is_listed_newest_first_by_status_and_by_type(queue: Queue, engine: Database) -> None:
    mails = await queue.add(3, next_run_time="'2026-01-02'")
    urgent = await queue.add(1, next_run_time="'2026-01-02'", priority="1")
    early = await queue.add(1, biz_type="'REPORT'", next_run_time="'2026-01-01'")
    await queue.add(1, status=3)
    newest = await queue.ids()

    async def look(observer: TaskObserver) -> None:
        assert ids(await observer.tasks(2)) == newest[:-3:-1]
        assert ids(await observer.tasks(9, before=newest[-2])) == newest[-3::-1]
        due = [*early, *urgent, *mails]
        assert ids(await observer.tasks_of_status(TaskStatus.PENDING, 9)) == due
        for place, last in enumerate(due):
            assert ids(await observer.tasks_of_status(TaskStatus.PENDING, 2, last)) == due[place + 1 : place + 3]
        assert ids(await observer.tasks_of_type("MAIL", 2)) == mails[:2]
        assert ids(await observer.tasks_of_type("MAIL", 9, mails[1]))[:2] == [mails[2], *urgent]
        assert ids(await observer.task_of_key("MAIL", "k0")) == mails[:1]
        assert "payload" not in (await observer.tasks(1))[0]

    await TaskObserver.step(await engine.open("observer"), look)


async def test_the_history_is_listed_newest_first_and_by_type(queue: Queue, engine: Database) -> None:
    old = []
    for key in ("b", "a", "a"):
        old += await queue.ended(biz_key=f"'{key}'")
        await queue.archive(old[-1])
    by_key = [old[1], old[2], old[0]]

    async def look(observer: TaskObserver) -> None:
        assert ids(await observer.archived(2)) == old[:0:-1]
        assert ids(await observer.archived(9, before=old[1])) == old[:1]
        assert ids(await observer.archived_of_type("MAIL", 9)) == by_key
        for place, last in enumerate(by_key):
            assert ids(await observer.archived_of_type("MAIL", 1, last)) == by_key[place + 1 : place + 2]
        assert ids(await observer.archived_of_key("MAIL", "a", 9)) == old[1:]
        assert ids(await observer.archived_of_key("MAIL", "a", 9, old[1])) == old[2:]
        assert (await observer.task(old[0]))["archived_at"] is not None
        with pytest.raises(NotFound):
            await observer.task(999)

    await TaskObserver.step(await engine.open("observer"), look)
