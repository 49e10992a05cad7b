"""What becomes of a task when its handler has ended (seed 003, rulings 4 and 8)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.decisions.finishing import (
    Failed,
    Finish,
    HandlerResult,
    Refused,
    Succeeded,
    Tried,
    finish,
    rescue,
    storable,
)
from tidings.decisions.retrying import Backoff, retry_delay
from tidings.model.task import LONGEST_RESULT, TASK_MOVES, TaskStatus

BACKOFF = Backoff(60, 3600, 0.1)


def test_a_handler_that_returned_makes_a_success() -> None:
    """Seed 003: 情境 A."""
    assert finish(Tried(7, 0, 3), Succeeded(), BACKOFF) == Finish(TaskStatus.SUCCESS, "OK")


@pytest.mark.parametrize("retry_count", [0, 1, 2])
def test_a_failure_with_retries_left_waits_by_the_formula_of_all_retries(retry_count: int) -> None:
    """Seed 003: 情境 B; ruling 4: over (task id, retry_count)."""
    ended = finish(Tried(7, retry_count, 3), Failed("boom"), BACKOFF)
    assert ended == Finish(TaskStatus.FAIL_RETRY, "boom", retry_delay(BACKOFF, 7, retry_count + 1))
    assert 60 * 2**retry_count <= ended.delay <= 66 * 2**retry_count


def test_a_failure_of_the_last_retry_is_for_good() -> None:
    """Seed 003: 情境 C."""
    assert finish(Tried(7, 3, 3), Failed("boom"), BACKOFF) == Finish(
        TaskStatus.FAIL_TERMINAL, "Max retries exceeded: boom"
    )


def test_without_retries_the_first_failure_is_for_good() -> None:
    assert finish(Tried(7, 0, 0), Failed("boom"), BACKOFF).status is TaskStatus.FAIL_TERMINAL


def test_a_handler_may_replace_the_delay_and_no_more() -> None:
    assert finish(Tried(7, 0, 3), Failed("later", after=5), BACKOFF).delay == 5
    assert finish(Tried(7, 3, 3), Failed("later", after=5), BACKOFF).status is TaskStatus.FAIL_TERMINAL


def test_a_handler_may_say_that_it_is_for_good() -> None:
    assert finish(Tried(7, 0, 3), Refused("no such user"), BACKOFF) == Finish(TaskStatus.FAIL_TERMINAL, "no such user")


def test_a_rescue_is_a_consumed_retry_at_once() -> None:
    """Seed 003: 救援任務; ruling 8."""
    assert rescue(Tried(7, 1, 3)) == Finish(TaskStatus.FAIL_RETRY, "Task timed out (Worker crashed?)", 0.0)
    assert rescue(Tried(7, 3, 3)) == Finish(
        TaskStatus.FAIL_TERMINAL, "Max retries exceeded: Task timed out (Worker crashed?)"
    )


@given(
    st.integers(0, 20), st.integers(0, 20), st.sampled_from([Succeeded(), Failed("a"), Failed("a", 1), Refused("a")])
)
def test_every_end_is_a_move_of_the_table(retry_count: int, max_retries: int, result: HandlerResult) -> None:
    ended = finish(Tried(1, retry_count, max_retries), result, BACKOFF)
    assert ended.status in TASK_MOVES[TaskStatus.PROCESSING]


@given(st.text(alphabet=st.characters(), max_size=3000))
def test_whatever_an_error_says_can_be_stored(text: str) -> None:
    stored = storable(text)
    assert len(stored) <= LONGEST_RESULT
    assert "\0" not in stored
    assert len(stored.encode()) < 65_536


def test_half_a_character_and_nul_are_replaced_and_long_texts_are_cut() -> None:
    assert storable("a\0b") == "a\ufffdb"
    assert storable("\ud800").encode()
    assert storable("x" * 5000) == "x" * (LONGEST_RESULT - 1) + "…"
