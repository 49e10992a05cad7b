"""Every state that a task can come to, with two workers that may crash, fall silent and come back too late."""

import re
from collections.abc import Iterator

import pytest

from tests.model.exploring import Explored, explore
from tests.model.task_moves import ENDS, Rules, Stage, Task, World
from tidings.decisions.finishing import Failed, Finish, HandlerResult, Tried, finish
from tidings.decisions.retrying import Backoff
from tidings.model.task import TaskStatus

WAITING, RUNNING, RETRY = TaskStatus.PENDING, TaskStatus.PROCESSING, TaskStatus.FAIL_RETRY
SUCCESS, TERMINAL = TaskStatus.SUCCESS, TaskStatus.FAIL_TERMINAL
# Said once more, and not taken from the product: seed 003 and ruling 8.
MOVES = {
    (WAITING, RUNNING),
    (RETRY, RUNNING),
    (RUNNING, SUCCESS),
    (RUNNING, RETRY),
    (RUNNING, TERMINAL),
    (RUNNING, WAITING),
}


def wrongs(before: Task, move: str, after: Task) -> Iterator[str]:
    if before.status is not after.status:
        if (before.status, after.status) not in MOVES:
            yield f"a task moved {before.status.name} → {after.status.name}"
        fence = before.fences[int(move[-1])] if move[-1].isdigit() else None
        if fence and not fence.is_last:
            yield "a late word was heard"
    if after.runs > 3:
        yield "a task ran more often than its retries allow"
    if after.status is SUCCESS and not after.was_done:
        yield "a task ended well that no handler has done"
    if after.status is TERMINAL and after.retries < 2:
        yield "a task was given up before its retries were used up"
    if after.places != 1:
        yield "a task is not in one place"
    last = [f for f in after.fences if f and f.is_last and f.stage is not Stage.READ]
    if len(last) > 1 and after.status is RUNNING:
        yield "two workers hold the version of the row"


def has_ended(task: Task) -> bool:
    return task.status in ENDS


def explored(world: World) -> Explored[Task]:
    return explore(Task(), world.moves, wrongs)


def test_no_reachable_state_of_a_task_is_wrong() -> None:
    found = explored(World())
    assert found.wrongs == []
    assert [*found.stuck(has_ended)] == []
    assert len(found.states) > 400
    assert {"crash 0", "rescue", "store unheard 1", "give back 0", "claim 1"} <= found.names
    assert {state.status for state in found.states} == set(TaskStatus)


def test_without_faults_a_task_runs_once() -> None:
    def others(before: Task, move: str, after: Task) -> Iterator[str]:
        """Without retries whoever fails is given up at once."""
        return (wrong for wrong in wrongs(before, move, after) if "given up" not in wrong)

    found = explore(Task(), World(crashes=False, falls_silent=False, max_retries=0).moves, others)
    assert found.wrongs == []
    assert max(state.runs for state in found.states) == 1


def never_gives_up(tried: Tried, result: HandlerResult, backoff: Backoff) -> Finish:
    return finish(Tried(tried.task_id, 0, 9), result, backoff)


def gives_up_at_once(tried: Tried, result: HandlerResult, backoff: Backoff) -> Finish:
    return finish(Tried(tried.task_id, 9, 0), result, backoff)


def forgives(tried: Tried, result: HandlerResult, backoff: Backoff) -> Finish:
    return Finish(SUCCESS, "OK") if isinstance(result, Failed) else finish(tried, result, backoff)


PLANTED = {
    "a claim without its version": (Rules(claim_checks_version=False), "a late word was heard"),
    "a result without its version": (Rules(finish_checks_version=False), "a late word was heard"),
    "a result by id alone": (Rules(finish_checks_version=False, finish_checks_status=False), "a late word was heard"),
    "moves that leave the version": (Rules(moves_add_to_version=False), "two workers hold the version|more often"),
    "a rescue that is not counted": (Rules(counts_rescues=False), "more often than its retries"),
    "an archiver that deletes first": (Rules(archive_is_one_transaction=False), "not in one place"),
    "retries for ever": (Rules(finish=never_gives_up), "more often than its retries"),
    "no retry": (Rules(finish=gives_up_at_once), "given up before"),
    "success whatever came of it": (Rules(finish=forgives), "no handler has done"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_wrong_rule_is_found(name: str) -> None:
    rules, expected = PLANTED[name]
    found = explored(World(rules=rules))
    assert any(re.search(expected, wrong) for wrong in found.wrongs), found.wrongs
