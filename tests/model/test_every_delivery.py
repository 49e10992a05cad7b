"""Every state that a delivery can come to, with workers that crash, freeze and report late, and a person who requeues.

Two sagas beside each other, three attempts each, one reset, one requeue: the product's pure decisions in a model of its
statements. What holds in all of these states holds whatever the scheduler does; and wrong decisions are found.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from tests.model.delivery_moves import ACTIVE, ENDS, FINISHED, Delivery, Hold, Phase, Rules, World
from tests.model.exploring import Beside, Explored, Move, explore, explore_pairs
from tidings.decisions.advancing import Advance, Buried, Completed, Ignored, JobResult, Retried, RetryPolicy, advance
from tidings.decisions.pacing import rooms
from tidings.model.job import JobStatus
from tidings.model.saga import SagaStatus

PENDING, IN_PROGRESS, PENDING_RETRY = SagaStatus.PENDING, SagaStatus.IN_PROGRESS, SagaStatus.PENDING_RETRY
COMPLETED, DEAD = SagaStatus.COMPLETED, SagaStatus.DEAD_LETTERED
# Said once more, and not taken from the product: seed r01 §3 and r02 §2.2.
SAGA_MOVES = {
    (PENDING, IN_PROGRESS),
    (IN_PROGRESS, COMPLETED),
    (IN_PROGRESS, PENDING_RETRY),
    (IN_PROGRESS, DEAD),
    (PENDING_RETRY, IN_PROGRESS),
    (PENDING_RETRY, DEAD),
}
JOB_MOVES = {
    (JobStatus.PENDING, JobStatus.LEASED),
    (JobStatus.LEASED, JobStatus.COMPLETED),
    (JobStatus.LEASED, JobStatus.FAILED),
    (JobStatus.LEASED, JobStatus.PENDING),
}
LATE = Hold(Phase.UNSENT, is_last=False)
WITHOUT_FAULTS = World(crashes=False, expires=False, answers_get_lost=False, requeues=0)


def wrongs(before: Delivery, move: str, after: Delivery) -> Iterator[str]:
    """What may not be, of any move and any state."""
    yield from _moves(before, move, after)
    yield from _ends(after)
    if before.status is PENDING_RETRY and move == "start" and before.attempts >= before.limit:
        yield "an attempt more than its limit was started"
    if after.job and after.sent > 1 + after.job.resets:
        yield f"one attempt was sent {after.sent} times with {after.job.resets} resets"
    if after.job and after.job.resets > 2:
        yield "a job outlived its second expiry"
    last = [hold for hold in after.holds if hold and hold.is_last and not hold.is_old]
    if len(last) > 1:
        yield "two workers hold the job's token"


def _moves(before: Delivery, move: str, after: Delivery) -> Iterator[str]:
    if move == "requeue":
        if (after.status, after.generation, after.attempts) != (PENDING, before.generation + 1, 0):
            yield "a requeue is no new beginning"
        return
    if before.status in ENDS and after.status is not before.status:
        yield f"a saga left its end {before.status}"
    elif before.status is not after.status and (before.status, after.status) not in SAGA_MOVES:
        yield f"a saga moved {before.status} → {after.status}"
    if after.attempts - before.attempts != (move == "take in"):
        yield f"{before.attempts} attempts became {after.attempts}"
    if before.job and after.job and before.job.status is not after.job.status:
        if (before.job.status, after.job.status) not in JOB_MOVES:
            yield f"a job moved {before.job.status} → {after.job.status}"
        if move.startswith(("report", "give back")) and not (before.holds[int(move[-1])] or LATE).is_last:
            yield "a late word was heard"
    if before.job and before.job.status in ACTIVE and move == "start":
        yield "a second job was started beside an active one"


def _ends(after: Delivery) -> Iterator[str]:
    if after.status is COMPLETED and not after.heard:
        yield "completed, and its endpoint never said yes"
    if after.status is DEAD and after.heard and not after.in_doubt:
        yield "dead, although its endpoint said yes and that was known"
    if after.status is DEAD and after.attempts < after.limit:
        yield "dead before its attempts were used up"
    if after.attempts > after.limit and after.limit == 3:
        yield "more attempts than its limit"
    if after.status in ENDS and after.job and after.job.status in ACTIVE:
        yield "ended with an active job"
    if after.status is IN_PROGRESS and after.job is None:
        yield "in progress without a job"


def has_ended(delivery: Delivery) -> bool:
    return delivery.status in ENDS


def explored(world: World) -> Explored[Delivery]:
    return explore(Delivery(), world.moves, wrongs)


def test_no_reachable_state_of_a_delivery_is_wrong() -> None:
    """Every reachable state against the invariants, and an end in sight from each of them."""
    found = explored(World())
    assert found.wrongs == []
    assert [*found.stuck(has_ended)] == []
    assert len(found.states) > 4_000
    late = {"crash 0", "expire", "reset", "fail stale", "report unheard 1", "yes, unheard 0", "requeue", "give back 1"}
    assert late <= found.names
    assert {state.status for state in found.states} == set(SagaStatus)
    assert any(s.status is DEAD and s.heard for s in found.states), "an unknown outcome was never the last one"
    assert any(h and h.is_old for s in found.states for h in s.holds), "nobody was ever an attempt behind"


def test_no_reachable_state_is_wrong_when_the_limit_is_lowered_meanwhile() -> None:
    found = explored(World(lowers_limit=True, requeues=0))
    assert found.wrongs == []
    assert [*found.stuck(has_ended)] == []
    assert "bury exhausted" in found.names


def test_without_faults_every_attempt_is_sent_at_most_once() -> None:
    """There is a duplicate only if a process died, froze past its lease, or lost its database."""
    found = explored(WITHOUT_FAULTS)
    assert found.wrongs == []
    assert max(state.sent for state in found.states) == 1
    assert not any(state.in_doubt or (state.job and state.job.resets) for state in found.states)
    twice = [s for s in found.states if s.heard and s.status not in (IN_PROGRESS, COMPLETED)]
    assert twice == []


def beside(window: int) -> Beside[Delivery]:
    """Two sagas of one subscription with this window; a worker that crashes loses what it holds of both."""
    return Beside(
        shared=lambda name: name.startswith("crash"),
        limited=lambda name: name == "start",
        load=lambda state: int(state.job is not None),
        has_room=[bool(rooms({1: window}, {1: active}, free=10)) for active in range(3)],
        most=window,
    )


def without_memory(world: World) -> Explored[Delivery]:
    """What only the invariants remember is forgotten: it was looked at alone, and would multiply the states."""

    def moves(state: Delivery) -> Iterable[Move[Delivery]]:
        for move in world.moves(state):
            yield replace(move, after=move.after._replace(sent=0, heard=False, in_doubt=False))

    return explore(Delivery(), moves, lambda *_: ())


@pytest.mark.slow
def test_two_sagas_beside_each_other_come_to_no_wrong_state() -> None:
    """3,276,484 states: 2 workers × 2 sagas × 3 attempts, with crash, zombie, late report and requeue."""
    found = explore_pairs(without_memory(World()), beside(2), has_ended)
    assert found.wrongs == []
    assert found.states > 3_000_000


def test_two_sagas_that_have_room_for_one_come_to_no_wrong_state_and_never_wait_for_ever() -> None:
    found = explore_pairs(without_memory(World(requeues=0)), beside(1), has_ended)
    assert found.wrongs == []
    assert found.states > 100_000


def retries_for_ever(result: JobResult, policy: RetryPolicy) -> Advance:
    decided = advance(result, policy)
    return Retried(1.0, decided.error_code) if isinstance(decided, Buried) else decided


def buries_one_too_early(result: JobResult, policy: RetryPolicy) -> Advance:
    return advance(result, RetryPolicy(policy.max_retry_limit - 1, policy.backoff))


def completes_on_any_answer(result: JobResult, policy: RetryPolicy) -> Advance:
    return Ignored() if result.saga_status is not IN_PROGRESS else Completed()


def forgets_a_failure(result: JobResult, policy: RetryPolicy) -> Advance:
    decided = advance(result, policy)
    return Ignored() if isinstance(decided, Retried) else decided


PLANTED = {
    "a report without its token": (Rules(report_checks_token=False), "a late word was heard"),
    "a report by id alone": (Rules(report_checks_token=False, report_checks_status=False), "a late word was heard"),
    "a report whatever the job's status": (Rules(report_checks_status=False, reset_makes_token=False), "a job moved"),
    "a give-back without its token": (Rules(give_back_checks_token=False), "a late word was heard"),
    "a lease that keeps the token": (Rules(lease_makes_token=False, reset_makes_token=False), "two workers hold"),
    "a cleaner that does not look again": (Rules(cleaner_locks=False), "a job moved"),
    "a lease that may expire for ever": (Rules(is_poisoned=lambda *_: False), "outlived its second expiry"),
    "a saga that is started and not marked": (Rules(start_marks=False), "second job was started"),
    "retries for ever": (Rules(advance=retries_for_ever, is_exhausted=lambda *_: False), "more than its limit"),
    "a burial one attempt too early": (Rules(advance=buries_one_too_early), "before its attempts were used up"),
    "success whatever came back": (Rules(advance=completes_on_any_answer), "never said yes"),
    "a failure that is not taken in": (Rules(advance=forgets_a_failure), "attempts became|without a job"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_wrong_rule_is_found(name: str) -> None:
    """A check that can't fail proves nothing."""
    rules, expected = PLANTED[name]
    found = explored(World(rules=rules))
    assert any(re.search(expected, wrong) for wrong in found.wrongs), found.wrongs


def test_a_reset_that_keeps_the_token_is_made_up_for_by_the_next_lease() -> None:
    """The reset's own token is a second line: who leases next makes a new one, and until then nobody is leased."""
    assert explored(World(rules=Rules(reset_makes_token=False))).wrongs == []


def test_a_delivery_that_nobody_resets_is_found_to_have_no_end() -> None:
    """The same for liveness: without a cleaner a crash leaves a lease for ever."""
    world = World()

    def without_cleaner(state: Delivery) -> Iterable[Move[Delivery]]:
        return (move for move in world.moves(state) if move.name not in ("reset", "fail stale"))

    found = explore(Delivery(), without_cleaner, wrongs)
    assert found.wrongs == []
    assert next(found.stuck(has_ended)).startswith("no end in sight after")


def test_two_that_start_without_looking_for_room_are_found() -> None:
    blind = replace(beside(1), has_room=[True] * 3)
    assert explore_pairs(without_memory(World(requeues=0)), blind, has_ended).wrongs


def test_finished_jobs_are_the_only_ones_that_are_taken_in() -> None:
    found = explored(World(requeues=0))
    taken = [s for s, m in zip(found.states, found.moves, strict=True) if any(name == "take in" for name, _, _ in m)]
    assert taken
    assert all(state.job and state.job.status in FINISHED for state in taken)
