"""A dead letter or a completed saga gets a next generation, once, and nothing else changes (r02 §3.3–3.4, ruling 1)."""

import asyncio

import pytest

from tests.roles.dead_letters.scene import SAGAS, Scene
from tidings.errors import InputRefused, StatementDenied
from tidings.model.dead_letter import Requeued, RequeueOutcome
from tidings.roles.dead_letters.requeueing import MOST_AT_ONCE, requeue, resend
from tidings.telemetry.notices import Notice, SagasRequeued

pytestmark = pytest.mark.slow

UNTOUCHED = ("events", "subscriptions", "dead_letters", "webhook_delivery_jobs")


async def test_a_requeue_makes_a_new_saga_and_leaves_everything_else_alone(scene: Scene) -> None:
    """r02 §3.3: same event, same subscription, Pending, 0 attempts, due now, no job; §3.4: nothing old changes."""
    (letter,) = await scene.letters(await scene.subscription())
    before = {table: await scene.all(table) for table in (*UNTOUCHED, SAGAS)}
    (done,) = await requeue(scene.engine, [letter], "ann")
    (old,) = before[SAGAS]
    kept, new = await scene.all(SAGAS)
    assert kept == old
    assert done == Requeued(letter, new["id"], 1, RequeueOutcome.STARTED)
    assert (new["event_id"], new["subscription_id"], new["correlation_id"]) == (
        old["event_id"],
        old["subscription_id"],
        old["correlation_id"],
    )
    assert (new["status"], new["attempt_count"], new["generation"], new["final_error_code"]) == ("Pending", 0, 1, None)
    assert new["next_attempt_at"] == new["created_at"] > old["created_at"]
    assert {table: await scene.all(table) for table in UNTOUCHED} == {table: before[table] for table in UNTOUCHED}


async def test_a_second_requeue_of_it_gets_the_same_saga(scene: Scene) -> None:
    """Ruling 1: the second caller gets it with "already"."""
    letters = await scene.letters(await scene.subscription())
    (first,) = await requeue(scene.engine, letters, "ann")
    (second,) = await requeue(scene.engine, letters, "bob")
    assert second == Requeued(letters[0], first.saga_id, 1, RequeueOutcome.ALREADY_STARTED)
    assert len(await scene.next_generation()) == 1


async def test_twenty_concurrent_requeues_of_one_dead_letter_make_one_new_saga(scene: Scene) -> None:
    """Catalogue H1; all of them learn which it is."""
    letters = await scene.letters(await scene.subscription())
    operators = [await scene.operator() for _ in range(5)]
    done = await asyncio.gather(*(requeue(operators[number % 5], letters, f"p{number}") for number in range(20)))
    outcomes = [one.outcome for (one,) in done]
    assert outcomes.count(RequeueOutcome.STARTED) == 1
    assert outcomes.count(RequeueOutcome.ALREADY_STARTED) == 19
    (new,) = await scene.next_generation()
    assert {one.saga_id for (one,) in done} == {new["id"]}
    assert len(await scene.audited()) == 20


async def test_overlapping_requeues_in_any_order_all_come_to_an_end(scene: Scene) -> None:
    letters = await scene.letters(await scene.subscription(), 60)
    operators = [await scene.operator() for _ in range(4)]
    some = [letters[:40], letters[20:], [*reversed(letters)], letters[::3]]
    done = await asyncio.gather(*(requeue(one, ids, "x") for one, ids in zip(operators, some, strict=True)))
    started = [one.id for ended in done for one in ended if one.outcome is RequeueOutcome.STARTED]
    assert sorted(started) == letters
    assert len(await scene.next_generation()) == 60


@pytest.mark.parametrize(
    ("column", "outcome"),
    [("active", RequeueOutcome.SUBSCRIPTION_INACTIVE), ("verified", RequeueOutcome.SUBSCRIPTION_UNVERIFIED)],
)
async def test_nothing_is_requeued_to_whom_nothing_may_be_sent(
    scene: Scene, column: str, outcome: RequeueOutcome
) -> None:
    """Ruling 1, catalogue H5: refused with the reason; the neighbour is not."""
    (letter,) = await scene.letters(await scene.subscription(**{column: False}))
    (other,) = await scene.letters(await scene.subscription())
    done = await requeue(scene.engine, [letter, other], "ann")
    assert [(one.id, one.outcome) for one in done] == [(letter, outcome), (other, RequeueOutcome.STARTED)]
    assert done[0].saga_id is None
    assert len(await scene.next_generation()) == 1


async def test_a_paused_subscription_can_be_requeued_to(scene: Scene) -> None:
    """Its sagas wait, and nothing is lost."""
    letters = await scene.letters(await scene.subscription(paused=True))
    (done,) = await requeue(scene.engine, letters, "ann")
    assert done.outcome is RequeueOutcome.STARTED


async def test_each_death_can_be_requeued_generation_by_generation(scene: Scene) -> None:
    """H2: what was requeued and died again has a dead letter of its own."""
    letters = await scene.letters(await scene.subscription())
    (first,) = await requeue(scene.engine, letters, "ann")
    await scene.sql(f"UPDATE {SAGAS} SET status = 'DeadLettered' WHERE id = {first.saga_id}")
    await scene.sql(
        "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot)"
        f" SELECT {first.saga_id}, event_id, subscription_id, payload_snapshot FROM dead_letters"
    )
    again = await scene.database.value("SELECT MAX(id) FROM dead_letters")
    (second,) = await requeue(scene.engine, [again], "ann")
    assert (second.outcome, second.generation) == (RequeueOutcome.STARTED, 2)
    (asked_again,) = await requeue(scene.engine, letters, "ann")
    assert (asked_again.outcome, asked_again.saga_id) == (RequeueOutcome.ALREADY_STARTED, first.saga_id)


async def test_what_was_requeued_and_delivered_can_be_resent(scene: Scene) -> None:
    """H2 as the design has it: the dead letter has one successor, a completed saga can be sent again."""
    letters = await scene.letters(await scene.subscription())
    (first,) = await requeue(scene.engine, letters, "ann")
    assert first.saga_id is not None
    await scene.sql(f"UPDATE {SAGAS} SET status = 'Completed' WHERE id = {first.saga_id}")
    (second,) = await resend(scene.engine, [first.saga_id], "ann")
    assert (second.outcome, second.generation) == (RequeueOutcome.STARTED, 2)


async def test_a_completed_saga_is_resent_once(scene: Scene) -> None:
    sagas = await scene.ended(await scene.subscription(), 2)
    first = await resend(scene.engine, sagas, "ann")
    second = await resend(scene.engine, sagas, "ann")
    assert {one.outcome for one in first} == {RequeueOutcome.STARTED}
    assert {one.outcome for one in second} == {RequeueOutcome.ALREADY_STARTED}
    assert [one.saga_id for one in first] == [one.saga_id for one in second]
    assert [(row["status"], row["attempt_count"]) for row in await scene.next_generation()] == [("Pending", 0)] * 2


async def test_only_completed_sagas_are_resent(scene: Scene) -> None:
    """Catalogue H3: what is still under way has a job of its own to come."""
    subscription = await scene.subscription()
    for status in ("Pending", "InProgress", "PendingRetry", "DeadLettered"):
        (saga,) = await scene.ended(subscription, status=status)
        (done,) = await resend(scene.engine, [saga], "ann")
        assert (done.outcome, done.saga_id) == (RequeueOutcome.NOT_ENDED_SO, None)
    assert await scene.next_generation() == []


async def test_what_does_not_exist_is_said_to_be_missing(scene: Scene) -> None:
    assert await requeue(scene.engine, [4711], "ann") == [Requeued(4711, None, None, RequeueOutcome.NOT_FOUND)]
    assert await resend(scene.engine, [4711], "ann") == [Requeued(4711, None, None, RequeueOutcome.NOT_FOUND)]
    assert await requeue(scene.engine, [], "ann") == []


async def test_the_same_id_twice_is_asked_once(scene: Scene) -> None:
    letters = await scene.letters(await scene.subscription())
    assert len(await requeue(scene.engine, letters * 3, "ann")) == 1


async def test_too_many_at_once_are_refused_and_nothing_happens(scene: Scene) -> None:
    await scene.letters(await scene.subscription())
    with pytest.raises(InputRefused, match="filter"):
        await requeue(scene.engine, range(1, MOST_AT_ONCE + 2), "ann")
    assert await scene.next_generation() == []
    assert await scene.audited() == []


async def test_who_did_it_is_kept_and_what_was_done_is_told(scene: Scene, told: list[Notice]) -> None:
    letters = await scene.letters(await scene.subscription())
    (done,) = await requeue(scene.engine, letters, "ann")
    assert await scene.audited() == [("ann", "dead_letters.requeued", "dead_letters")]
    assert [one.saga_ids for one in told if isinstance(one, SagasRequeued)] == [(done.saga_id,)]


@pytest.mark.parametrize(
    "text",
    [
        f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id) VALUES (1, 1, 'c')",
        f"UPDATE {SAGAS} SET status = 'Pending'",
        f"DELETE FROM {SAGAS}",
        "UPDATE events SET payload = '{}'",
        "UPDATE subscriptions SET active = true",
        "UPDATE dead_letters SET final_error_code = ''",
    ],
)
async def test_the_operator_has_no_way_around_the_routine(scene: Scene, text: str) -> None:
    """r02 §4.3."""
    with pytest.raises(StatementDenied, match="denied"):
        await scene.database.sql(text, role="dead_letter_operator")
