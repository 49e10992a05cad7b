"""What `doctor` makes of tasks that wait."""

from tidings.decisions.diagnosing import Health, TaskFacts, judge_tasks


def facts(
    biz_type: str = "MAIL", due: int = 3, oldest: float = 10, process: str = "task-worker", running: int = 1
) -> TaskFacts:
    return TaskFacts(biz_type, due, oldest, process, running)


def test_nothing_due_is_right_whoever_runs() -> None:
    assert judge_tasks([]).health is Health.RIGHT
    assert judge_tasks([facts(due=0, oldest=0, running=0)]).health is Health.RIGHT


def test_what_waits_for_a_moment_is_right() -> None:
    finding = judge_tasks([facts()])
    assert (finding.health, finding.says) == (Health.RIGHT, "3 of type MAIL wait, the first for 10 s")


def test_tasks_without_any_worker_are_doubtful() -> None:
    finding = judge_tasks([facts(running=0)])
    assert finding.health is Health.DOUBTFUL
    assert finding.says.startswith("no task-worker runs; 3 of type MAIL wait")


def test_a_type_that_waits_for_long_beside_running_workers_is_handled_by_none_of_them() -> None:
    finding = judge_tasks([facts(), facts("FAX", 1, 301)])
    assert finding.health is Health.DOUBTFUL
    assert finding.says == "1 of type FAX wait, the first for 301 s"


def test_our_own_tasks_wait_for_our_own_worker() -> None:
    finding = judge_tasks([facts(), facts("subscription.verify", process="verifier", running=0)])
    assert finding.says.startswith("no verifier runs; 3 of type subscription.verify wait")
