"""How much waits of each type of task, for `doctor` and the metrics."""

from prometheus_client import CollectorRegistry

from tests.roles.task_worker.scene import Scene
from tests.support.database import Database
from tidings.model.depths import TaskDepth
from tidings.roles.observer.depths import DepthObserver
from tidings.telemetry.metrics import Metrics
from tidings.telemetry.notices import (
    TaskFailed,
    TaskFenceLost,
    TaskGivenUp,
    TaskRescued,
    TaskRetryScheduled,
    TasksClaimed,
    TasksGivenBack,
    TasksSucceeded,
)


async def test_each_type_that_waits_is_told_with_what_is_due(engine: Database) -> None:
    scene = Scene(engine)
    await scene.submit("B.MAIL", 3, priority=1, due_since=50)
    await scene.submit("B.MAIL", 2, priority=9, due_since=500)
    await scene.submit("B.MAIL", 4, priority=0, due_since=-3600)
    await scene.submit("A", 2, due_since=-3600, status=3)
    await scene.submit("RUNNING", 2, status=1)
    await scene.submit("DONE", 2, status=2)
    observer = await engine.open("observer")
    depths = await DepthObserver.step(observer, DepthObserver.depths)
    a, mail = depths.tasks
    assert a == TaskDepth("A", 2, 0, 0.0)
    assert (mail.biz_type, mail.waiting, mail.due) == ("B.MAIL", 9, 5)
    assert 500 <= mail.oldest_seconds < 600
    assert depths.queues["tasks_running"].count == 2
    (first, second) = await DepthObserver.step(observer, lambda it: it.tasks(3))
    assert (first.waiting, second.waiting) == (2, 3)


async def test_the_metrics_show_them_by_type_and_forget_who_waits_no_more(engine: Database) -> None:
    scene = Scene(engine)
    (task,) = await scene.submit("MAIL", due_since=50)
    observer = await engine.open("observer")
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.show_depths(await DepthObserver.step(observer, DepthObserver.depths))
    assert registry.get_sample_value("tidings_tasks_due", {"biz_type": "MAIL"}) == 1
    await scene.sql(f"UPDATE sys_pending_tasks SET status = 2 WHERE id = {task}")
    metrics.show_depths(await DepthObserver.step(observer, DepthObserver.depths))
    assert registry.get_sample_value("tidings_tasks_due", {"biz_type": "MAIL"}) is None


def test_what_is_told_of_tasks_is_counted() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    about = ("c", 7, "MAIL", "w", 1)
    for notice in (
        TasksClaimed("w", 5, 2),
        TasksSucceeded("w", about[2], (20,)),
        TaskRetryScheduled(*about, 20, "boom", 60.0, ""),
        TaskFailed(*about, 20, "boom", ""),
        TaskFenceLost(*about, "SUCCESS", "OK"),
        TasksGivenBack("w", (1, 2, 3), "stopping"),
        TaskRescued(*about),
        TaskGivenUp(*about),
    ):
        metrics.hear(notice)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"tidings_{name}", labels)

    assert (value("tasks_claimed_total"), value("task_races_lost_total")) == (5, 2)
    assert [value("tasks_total", biz_type="MAIL", outcome=one) for one in ("success", "retry", "failed")] == [1, 1, 1]
    assert value("task_seconds_count", biz_type="MAIL") == 3
    assert (value("task_fences_lost_total"), value("tasks_given_back_total", reason="stopping")) == (1, 3)
    assert [value("tasks_rescued_total", outcome=one) for one in ("retry", "failed")] == [1, 1]
