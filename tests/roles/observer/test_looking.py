"""What no index serves is looked for in a bounded number of rows at a time, and is found in the end."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.database import Database
from tests.support.queue import Queue
from tidings.model.task import TaskStatus
from tidings.roles.observer.audit import AuditFilter, AuditObserver
from tidings.roles.observer.listing import Page, Place
from tidings.roles.observer.pages import WINDOW
from tidings.roles.observer.task_pages import TaskFilter, TaskKind, TaskPages

MANY, LIMIT = WINDOW + 10, 250


async def walked(look: Callable[[Any, int, Place | None], Awaitable[Page]], filter: Any) -> tuple[list[Any], int]:
    """All that is found, and in how many pages."""
    found: list[Any] = []
    page, pages = await look(filter, LIMIT, None), 1
    while True:
        found += page.items
        if page.next is None:
            return found, pages
        page, pages = await look(filter, LIMIT, page.next), pages + 1


async def test_a_rare_task_behind_many_others_is_found_on_a_later_page(queue: Queue, engine: Database) -> None:
    rare = await queue.ended(1, 4, biz_type="'RARE'", updated_at="'2019-01-01'")
    await queue.ended(MANY, 4)
    old = await queue.add(1, 3, next_run_time="'2026-02-01'")
    await queue.add(MANY, 0, next_run_time="'2026-01-01'")
    last = await queue.add(1, 3, priority="20")

    async def look(observer: TaskPages) -> None:
        failed = TaskFilter("RARE", status=TaskStatus.FAIL_TERMINAL)
        found, pages = await walked(observer.queue, failed)
        assert ([row["id"] for row in found], pages) == (rare, 2)
        retried = TaskFilter("MAIL", status=TaskStatus.FAIL_RETRY)
        found, pages = await walked(observer.queue, retried)
        assert ([row["id"] for row in found], pages) == ([*old, *last], 2)
        waiting = TaskFilter("MAIL", status=TaskStatus.PENDING)
        found, _ = await walked(observer.queue, waiting)
        assert len({row["id"] for row in found}) == len(found) == MANY

    await TaskPages.step(await engine.open("observer"), look)


async def test_the_history_is_looked_through_in_the_same_way(queue: Queue, engine: Database) -> None:
    rare = await queue.ended(1, 4, biz_type="'RARE'")
    await queue.archive(*rare)
    await engine.sql("UPDATE sys_pending_tasks_history SET archived_at = '2020-01-01'")
    await queue.archive(*await queue.ended(MANY))

    async def look(observer: TaskPages) -> None:
        for kind in ("", "RARE"):
            found, pages = await walked(observer.history, TaskFilter(kind, status=TaskStatus.FAIL_TERMINAL))
            assert ([row["id"] for row in found], pages) == (rare, 2)
        found, _ = await walked(observer.history, TaskFilter())
        assert len({row["id"] for row in found}) == len(found) == MANY + 1
        found, _ = await walked(observer.history, TaskFilter("RARE"))
        assert [row["id"] for row in found] == rare

    await TaskPages.step(await engine.open("observer"), look)


async def test_deeds_of_somebody_seldom_are_found_behind_many_others(engine: Database) -> None:
    await engine.sql("INSERT INTO audit_log (actor, action, subject) VALUES ('ada', 'route.changed', 'route:1')")
    values = ", ".join(f"('bob', 'task.retried', 'task:{n}')" for n in range(MANY))
    await engine.sql(f"INSERT INTO audit_log (actor, action, subject) VALUES {values}")

    async def look(observer: AuditObserver) -> None:
        for filter in (AuditFilter(actor="ada"), AuditFilter(action="route.changed"), AuditFilter(subject="route:")):
            found, pages = await walked(observer.audits, filter)
            assert ([row["subject"] for row in found], pages) == (["route:1"], 2)
        everything, _ = await walked(observer.audits, AuditFilter())
        assert len({row["id"] for row in everything}) == len(everything) == MANY + 1

    await AuditObserver.step(await engine.open("observer"), look)


async def test_kinds_of_tasks_are_counted_by_what_they_do(queue: Queue, engine: Database) -> None:
    await queue.add(2, next_run_time="'2020-01-01'")
    await queue.add(1, 3, next_run_time="'2100-01-01'")
    await queue.add(1, 1)
    await queue.ended(3, 4, biz_type="'REPORT'")
    await queue.ended(3, 2, biz_type="'QUIET'")
    kinds = await TaskPages.step(await engine.open("observer"), TaskPages.kinds)
    assert kinds == [TaskKind("MAIL", waiting=3, due=2, running=1), TaskKind("REPORT", failed=3)]
