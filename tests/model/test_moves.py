"""The state machines as data: they are those of the seeds."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest

from tidings.model.job import JOB_MOVES, JobStatus
from tidings.model.saga import SAGA_MOVES, SagaStatus
from tidings.model.task import TASK_MOVES, TaskStatus


def test_the_moves_of_a_saga_are_those_of_seed_r01_section_3() -> None:
    moves = {(old.value, new.value) for old, news in SAGA_MOVES.items() for new in news}
    assert moves == {
        ("Pending", "InProgress"),
        ("InProgress", "Completed"),
        ("InProgress", "PendingRetry"),
        ("PendingRetry", "InProgress"),
        ("PendingRetry", "DeadLettered"),
    }


def test_the_moves_of_a_job_are_those_of_seed_r02_section_2_2() -> None:
    moves = {(old.value, new.value) for old, news in JOB_MOVES.items() for new in news}
    assert moves == {("Pending", "Leased"), ("Leased", "Completed"), ("Leased", "Failed"), ("Leased", "Pending")}


def test_the_moves_of_a_task_are_those_of_seed_003_and_ruling_8() -> None:
    moves = {(old.value, new.value) for old, news in TASK_MOVES.items() for new in news}
    assert moves == {(0, 1), (0, 4), (1, 2), (1, 3), (1, 4), (1, 0), (3, 1), (3, 4), (4, 0)}


@pytest.mark.parametrize(
    ("statuses", "moves"), [(SagaStatus, SAGA_MOVES), (JobStatus, JOB_MOVES), (TaskStatus, TASK_MOVES)]
)
def test_every_status_has_its_moves(statuses: type[Enum], moves: Mapping[Any, Any]) -> None:
    assert set(moves) == set(statuses)


def test_what_has_ended_never_moves() -> None:
    ended = (SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED)
    assert not any(SAGA_MOVES[status] for status in ended)
    assert not any(JOB_MOVES[status] for status in (JobStatus.COMPLETED, JobStatus.FAILED))
    assert not TASK_MOVES[TaskStatus.SUCCESS]
