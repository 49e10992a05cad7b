"""Requeue and resend: a next generation for a saga that has ended, through two routines of the operator alone."""

import asyncio
import datetime
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.database import Database, as_it_stands
from tests.support.waiting import eventually
from tidings.db.session import Row
from tidings.db.transaction import Transaction
from tidings.errors import StatementFailed, TransientFailure
from tidings.flow import OWNER, ROLE_NAMES

pytestmark = pytest.mark.slow

OPERATOR = "dead_letter_operator"
SAGAS, JOBS = "webhook_delivery_sagas", "webhook_delivery_jobs"
ROUTINES = {"requeue_dead_letters": "DeadLettered", "resend_sagas": "Completed"}


def call(engine: Database, routine: str, ids: Sequence[int]) -> str:
    listed = ", ".join(map(str, ids))
    if engine.family == "postgresql":
        return f"SELECT * FROM {routine}(ARRAY[{listed}]::bigint[])"
    return f"CALL {routine}('[{listed}]')"


async def asked(engine: Database, routine: str, *ids: int) -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql(call(engine, routine, ids), role=OPERATOR)]


async def requeue(engine: Database, *ids: int) -> list[dict[str, Any]]:
    return await asked(engine, "requeue_dead_letters", *ids)


async def resend(engine: Database, *ids: int) -> list[dict[str, Any]]:
    return await asked(engine, "resend_sagas", *ids)


async def new_subscription(engine: Database, *, active: bool = True, verified: bool = True) -> int:
    return int(
        await engine.value(
            "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
            f" VALUES ('a', 'https://example.com', {active}, {verified}) RETURNING id"
        )
    )


async def new_sagas(engine: Database, subscription: int, *events: int, status: str) -> list[int]:
    rows = ", ".join(f"({event}, {subscription}, 'c{event}', '{status}', 3, 'http_500')" for event in events)
    texts = f"(event_id, subscription_id, correlation_id, status, attempt_count, final_error_code) VALUES {rows}"
    return [row["id"] for row in await engine.sql(f"INSERT INTO {SAGAS} {texts} RETURNING id")]


async def new_dead_letters(engine: Database, subscription: int, *events: int) -> list[int]:
    """Dead letters of sagas that have just been buried, one for each event."""
    await new_sagas(engine, subscription, *events, status="DeadLettered")
    return await bury(engine, subscription, *events)


async def bury(engine: Database, subscription: int, *events: int) -> list[int]:
    rows = await engine.sql(
        "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot)"
        f" SELECT s.id, s.event_id, s.subscription_id, '{{}}' FROM {SAGAS} s"
        " LEFT JOIN dead_letters d ON d.saga_id = s.id"
        f" WHERE s.status = 'DeadLettered' AND d.id IS NULL AND s.subscription_id = {subscription}"
        f" AND s.event_id IN ({', '.join(map(str, events))}) ORDER BY s.id RETURNING id"
    )
    return [row["id"] for row in rows]


async def ended(engine: Database, routine: str, subscription: int, *events: int) -> list[int]:
    """What this routine may be asked about: the ids of dead letters, or of completed sagas."""
    if routine == "requeue_dead_letters":
        return await new_dead_letters(engine, subscription, *events)
    return await new_sagas(engine, subscription, *events, status="Completed")


async def saga(engine: Database, id: int) -> Row:
    (row,) = await engine.sql(f"SELECT * FROM {SAGAS} WHERE id = {id}")
    return row


async def stored(engine: Database) -> dict[str, list[dict[str, Any]]]:
    tables = ("events", "subscriptions", SAGAS, JOBS, "dead_letters")
    owner = await engine.open(OWNER)
    async with owner.transaction() as transaction:
        return {
            table: [dict(row) for row in await rows(transaction, f"SELECT * FROM {table} ORDER BY id")]
            for table in tables
        }


async def rows(transaction: Transaction, text: str) -> Sequence[Row]:
    return await transaction.rows(as_it_stands(text))


def outcomes(rows: Sequence[Row]) -> list[str]:
    return [row["outcome"] for row in rows]


# One new saga


@pytest.mark.parametrize("routine", ROUTINES)
async def test_the_next_generation_is_a_new_saga_from_the_start(engine: Database, routine: str) -> None:
    """r02 §3.3: "same event_id, same subscription_id, status = Pending, attempt_count = 0, next_attempt_at = now"."""
    subscription = await new_subscription(engine)
    (id,) = await ended(engine, routine, subscription, 7)
    (answer,) = await asked(engine, routine, id)
    made = await saga(engine, answer["saga_id"])
    assert (made["event_id"], made["subscription_id"], made["generation"]) == (7, subscription, 1)
    assert (made["status"], made["attempt_count"], made["final_error_code"]) == ("Pending", 0, None)
    assert made["correlation_id"] == "c7"
    assert abs(made["next_attempt_at"] - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(seconds=60)


@pytest.mark.parametrize(
    ("routine", "key"), [("requeue_dead_letters", "dead_letter_id"), ("resend_sagas", "old_saga_id")]
)
async def test_the_answer_names_what_was_asked_the_new_saga_and_the_outcome(
    engine: Database, routine: str, key: str
) -> None:
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    (answer,) = await asked(engine, routine, id)
    made = await engine.value(f"SELECT id FROM {SAGAS} WHERE generation = 1")
    assert answer == {key: id, "saga_id": made, "generation": 1, "outcome": "started"}


@pytest.mark.parametrize("routine", ROUTINES)
async def test_nothing_but_the_new_saga_is_written(engine: Database, routine: str) -> None:
    """r02 §3.4: never "modify the old saga, reuse any old job, alter event payload, alter subscription config"."""
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")
    (id,) = await ended(engine, routine, await new_subscription(engine), 1)
    await engine.sql(
        f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no, status)"
        " VALUES (1000000, 1, '2026-01-01', 1, 'Failed')"
    )
    before = await stored(engine)
    (answer,) = await asked(engine, routine, id)
    after = await stored(engine)
    after[SAGAS] = [row for row in after[SAGAS] if row["id"] != answer["saga_id"]]
    assert after == before


@pytest.mark.parametrize("routine", ROUTINES)
async def test_no_job_is_created(engine: Database, routine: str) -> None:
    """r02 §3.3: "Do NOT create a job here"."""
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    await asked(engine, routine, id)
    assert await engine.value(f"SELECT COUNT(*) FROM {JOBS}") == 0


# However often


@pytest.mark.parametrize("routine", ROUTINES)
async def test_asked_twice_the_second_answer_is_the_first_ones_saga(engine: Database, routine: str) -> None:
    """Ruling 1: "the second caller gets it with `already_requeued: true`", wherever it has got to."""
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    (first,) = await asked(engine, routine, id)
    for status in ("Pending", "InProgress", "Completed"):
        await engine.sql(f"UPDATE {SAGAS} SET status = '{status}' WHERE id = {first['saga_id']}")
        assert await asked(engine, routine, id) == [{**first, "outcome": "already_started"}]
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE generation > 0") == 1


@pytest.mark.parametrize("routine", ROUTINES)
async def test_the_same_id_twice_in_one_call_makes_one_saga_and_both_answers_name_it(
    engine: Database, routine: str
) -> None:
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    first, second = await asked(engine, routine, id, id)
    assert first == second
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE generation > 0") == 1


@pytest.mark.parametrize("routine", ROUTINES)
async def test_of_twenty_callers_at_once_one_starts_and_all_get_the_same_saga(engine: Database, routine: str) -> None:
    """Ruling 1: "requeueing one dead letter twice, also at the same time, gives one new saga"."""
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    answers = await at_once(engine, routine, [[id]] * 20)
    assert Counter(row["outcome"] for rows in answers for row in rows) == {"started": 1, "already_started": 19}
    (made,) = {row["saga_id"] for rows in answers for row in rows}
    assert await engine.value(f"SELECT id FROM {SAGAS} WHERE generation = 1") == made


@pytest.mark.parametrize("routine", ROUTINES)
async def test_sagas_are_locked_in_the_order_of_their_ids_whatever_the_order_of_the_list(
    engine: Database, routine: str
) -> None:
    """So two callers never stand in each other's way: who waits for a saga holds none that comes after it."""
    ids = await ended(engine, routine, await new_subscription(engine), 7, 8)
    holder = await engine.open(OWNER)
    async with holder.transaction() as held:
        await rows(held, f"SELECT * FROM {SAGAS} WHERE event_id = 7 FOR UPDATE")
        caller = asyncio.create_task(at_once(engine, routine, [ids[::-1]]))
        await eventually(lambda: engine.value(WAITING[engine.family], role="admin"), what="the caller to wait")
        assert len(await rows(held, f"SELECT * FROM {SAGAS} WHERE event_id = 8 FOR UPDATE NOWAIT")) == 1
    (answers,) = await caller
    assert outcomes(answers) == ["started", "started"]


WAITING = {
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    "mysql": "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
}


@pytest.mark.parametrize("routine", ROUTINES)
async def test_twenty_callers_with_lists_in_opposite_order_do_not_deadlock(engine: Database, routine: str) -> None:
    ids = await ended(engine, routine, await new_subscription(engine), *range(1, 101))
    answers = await at_once(engine, routine, [ids, ids[::-1]] * 10)
    assert Counter(row["outcome"] for rows in answers for row in rows) == {"started": 100, "already_started": 1900}
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE generation = 1") == 100


async def at_once(engine: Database, routine: str, lists: Sequence[Sequence[int]]) -> list[Sequence[Row]]:
    """Each list by a caller of its own, in a transaction that is not run again."""
    callers = [await engine.open(OPERATOR) for _ in lists]

    async def one(number: int) -> Sequence[Row]:
        async with callers[number].transaction() as transaction:
            return await rows(transaction, call(engine, routine, lists[number]))

    return list(await asyncio.gather(*map(one, range(len(lists)))))


async def test_a_requeued_saga_that_dies_again_is_requeued_as_the_generation_after(engine: Database) -> None:
    subscription = await new_subscription(engine)
    (letter,) = await new_dead_letters(engine, subscription, 7)
    (first,) = await requeue(engine, letter)
    await engine.sql(f"UPDATE {SAGAS} SET status = 'DeadLettered' WHERE id = {first['saga_id']}")
    (again,) = await bury(engine, subscription, 7)
    (second,) = await requeue(engine, again)
    assert (second["outcome"], second["generation"]) == ("started", 2)
    assert (await saga(engine, second["saga_id"]))["status"] == "Pending"


async def test_a_requeued_saga_that_completes_is_resent_as_the_generation_after(engine: Database) -> None:
    (letter,) = await new_dead_letters(engine, await new_subscription(engine), 7)
    (first,) = await requeue(engine, letter)
    await engine.sql(f"UPDATE {SAGAS} SET status = 'Completed' WHERE id = {first['saga_id']}")
    (second,) = await resend(engine, first["saga_id"])
    assert (second["outcome"], second["generation"]) == ("started", 2)


async def test_the_first_dead_letter_of_a_chain_still_names_the_saga_that_it_became(engine: Database) -> None:
    subscription = await new_subscription(engine)
    (letter,) = await new_dead_letters(engine, subscription, 7)
    (first,) = await requeue(engine, letter)
    await engine.sql(f"UPDATE {SAGAS} SET status = 'DeadLettered' WHERE id = {first['saga_id']}")
    await requeue(engine, *await bury(engine, subscription, 7))
    assert await requeue(engine, letter) == [{**first, "outcome": "already_started"}]


# What is not started


@pytest.mark.parametrize("routine", ROUTINES)
@pytest.mark.parametrize(
    ("active", "verified", "outcome"),
    [
        (False, True, "subscription_inactive"),
        (True, False, "subscription_unverified"),
        (False, False, "subscription_inactive"),
    ],
)
async def test_nothing_starts_for_a_subscription_that_may_not_be_sent_to(
    engine: Database, routine: str, active: bool, verified: bool, outcome: str
) -> None:
    """Ruling 1: "for an inactive or unverified subscription is refused with the reason"."""
    subscription = await new_subscription(engine, active=active, verified=verified)
    (id,) = await ended(engine, routine, subscription, 7)
    before = await stored(engine)
    (answer,) = await asked(engine, routine, id)
    assert (answer["outcome"], answer["saga_id"]) == (outcome, None)
    assert await stored(engine) == before


async def test_for_a_paused_subscription_the_saga_is_made_and_waits(engine: Database) -> None:
    """To pause is to hold: sagas are still created."""
    (letter,) = await new_dead_letters(engine, await new_subscription(engine), 7)
    await engine.sql("UPDATE subscriptions SET paused = TRUE")
    assert outcomes(await requeue(engine, letter)) == ["started"]


async def test_what_has_started_is_still_named_after_the_subscription_was_deactivated(engine: Database) -> None:
    (letter,) = await new_dead_letters(engine, await new_subscription(engine), 7)
    (first,) = await requeue(engine, letter)
    await engine.sql("UPDATE subscriptions SET active = FALSE")
    assert await requeue(engine, letter) == [{**first, "outcome": "already_started"}]


@pytest.mark.parametrize("status", ["Pending", "InProgress", "PendingRetry", "DeadLettered"])
async def test_a_saga_that_is_not_completed_is_not_resent(engine: Database, status: str) -> None:
    (id,) = await new_sagas(engine, await new_subscription(engine), 7, status=status)
    before = await stored(engine)
    (answer,) = await resend(engine, id)
    assert (answer["outcome"], answer["saga_id"]) == ("not_ended_so", None)
    assert await stored(engine) == before


@pytest.mark.parametrize("routine", ROUTINES)
async def test_an_id_that_nobody_knows_is_not_found(engine: Database, routine: str) -> None:
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    unknown = await asked(engine, routine, 0, -1, id + 1000, 9223372036854775807)
    assert outcomes(unknown) == ["not_found"] * 4
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == 1


@pytest.mark.parametrize("routine", ROUTINES)
async def test_an_empty_list_is_answered_with_nothing(engine: Database, routine: str) -> None:
    assert await asked(engine, routine) == []


@pytest.mark.parametrize("routine", ROUTINES)
async def test_a_mixed_list_is_answered_one_by_one(engine: Database, routine: str) -> None:
    good = await new_subscription(engine)
    (old,) = await ended(engine, routine, good, 1)
    await asked(engine, routine, old)
    (fresh,) = await ended(engine, routine, good, 2)
    (inactive,) = await ended(engine, routine, await new_subscription(engine, active=False), 3)
    (unverified,) = await ended(engine, routine, await new_subscription(engine, verified=False), 4)
    answers = await asked(engine, routine, unverified, 1_000_000, fresh, old, inactive)
    key = next(iter(answers[0]))
    assert {row[key]: row["outcome"] for row in answers} == {
        old: "already_started",
        fresh: "started",
        inactive: "subscription_inactive",
        unverified: "subscription_unverified",
        1_000_000: "not_found",
    }
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE generation = 1") == 2


@pytest.mark.parametrize("routine", ROUTINES)
async def test_five_hundred_in_one_call(engine: Database, routine: str) -> None:
    ids = await ended(engine, routine, await new_subscription(engine), *range(1, 501))
    answers = await asked(engine, routine, *ids)
    assert Counter(outcomes(answers)) == {"started": 500}
    assert len({row["saga_id"] for row in answers}) == 500
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS} WHERE generation = 1 AND status = 'Pending'") == 500


# By the operator alone


async def test_the_operator_itself_writes_no_saga(engine: Database) -> None:
    """Phase 8: "each component only has the minimal allowed operations"."""
    await new_dead_letters(engine, await new_subscription(engine), 7)
    before = await stored(engine)
    for text in (
        f"INSERT INTO {SAGAS} (event_id, subscription_id, correlation_id) VALUES (1, 1, 'c')",
        f"UPDATE {SAGAS} SET status = 'Pending'",
        f"DELETE FROM {SAGAS}",
        "DELETE FROM dead_letters",
    ):
        with pytest.raises(StatementFailed, match="denied"):
            await engine.sql(text, role=OPERATOR)
    assert await stored(engine) == before


async def test_nobody_but_the_routines_calls_what_stands_behind_them(engine: Database) -> None:
    """Else an operator could have a generation for any saga, also for one that was never buried."""
    (id,) = await new_sagas(engine, await new_subscription(engine), 7, status="Pending")
    if engine.family == "postgresql":
        text = f"SELECT * FROM start_next_generation(ARRAY[{id}]::bigint[], 'Pending')"
    else:
        text = f"CALL start_next_generation('[{id}]', 'Pending')"
    for role in ROLE_NAMES:
        with pytest.raises(StatementFailed, match="denied"):
            await engine.sql(text, role=role)
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == 1


@pytest.mark.parametrize("routine", ROUTINES)
async def test_no_other_role_calls_it(engine: Database, routine: str) -> None:
    """It is executable by `dead_letter_operator` alone."""
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    for role in [role for role in ROLE_NAMES if role != OPERATOR]:
        with pytest.raises(StatementFailed, match="denied"):
            await engine.sql(call(engine, routine, [id]), role=role)
    assert await engine.value(f"SELECT COUNT(*) FROM {SAGAS}") == 1


# Whole or not at all


class GivenUp(Exception):
    pass


@pytest.mark.parametrize("routine", ROUTINES)
async def test_it_is_undone_with_the_callers_transaction(engine: Database, routine: str) -> None:
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    before = await stored(engine)
    operator = await engine.open(OPERATOR)

    async def start_and_give_up() -> None:
        async with operator.transaction() as transaction:
            assert outcomes(await rows(transaction, call(engine, routine, [id]))) == ["started"]
            raise GivenUp

    with pytest.raises(GivenUp):
        await start_and_give_up()
    assert await stored(engine) == before
    assert outcomes(await asked(engine, routine, id)) == ["started"]


@pytest.mark.parametrize("routine", ROUTINES)
async def test_it_is_undone_with_the_callers_savepoint(engine: Database, routine: str) -> None:
    first, second = await ended(engine, routine, await new_subscription(engine), 7, 8)
    operator = await engine.open(OPERATOR)

    async def start_and_give_up(transaction: Transaction) -> None:
        async with transaction.savepoint():
            await rows(transaction, call(engine, routine, [second]))
            raise GivenUp

    async with operator.transaction() as transaction:
        await rows(transaction, call(engine, routine, [first]))
        with pytest.raises(GivenUp):
            await start_and_give_up(transaction)
    made = await engine.sql(f"SELECT event_id FROM {SAGAS} WHERE generation = 1")
    assert [row["event_id"] for row in made] == [7]


@pytest.mark.parametrize("routine", ROUTINES)
async def test_call_after_call_in_one_transaction_is_answered_in_turn(engine: Database, routine: str) -> None:
    """A procedure's answer has an end of its own on the wire, which must have been read before the next question."""
    ids = await ended(engine, routine, await new_subscription(engine), 7, 8, 9)
    operator = await engine.open(OPERATOR)
    async with operator.transaction() as transaction:
        for id in ids:
            assert outcomes(await rows(transaction, call(engine, routine, [id]))) == ["started"]
            (counted,) = await rows(transaction, f"SELECT COUNT(*) AS n FROM {SAGAS} WHERE generation = 1")
            assert counted["n"] == ids.index(id) + 1


@pytest.mark.parametrize("routine", ROUTINES)
async def test_it_waits_for_nobody_who_works_at_other_sagas(engine: Database, routine: str) -> None:
    subscription = await new_subscription(engine)
    (id,) = await ended(engine, routine, subscription, 7)
    (other,) = await new_sagas(engine, subscription, 8, status="Pending")
    orchestrator, operator = await engine.open("saga_orchestrator"), await engine.open(OPERATOR)
    async with orchestrator.transaction() as theirs, operator.transaction() as ours:
        await rows(theirs, f"SELECT * FROM {SAGAS} WHERE id = {other} FOR UPDATE")
        await ours.command(impatience(engine))
        assert outcomes(await rows(ours, call(engine, routine, [id]))) == ["started"]


@pytest.mark.parametrize("routine", ROUTINES)
async def test_after_an_error_in_its_midst_nothing_is_left_and_the_next_call_works(
    engine: Database, routine: str
) -> None:
    """Here the error is a lock that somebody else holds on one of the old sagas."""
    ids = await ended(engine, routine, await new_subscription(engine), 7, 8)
    before = await stored(engine)
    owner, operator = await engine.open(OWNER), await engine.open(OPERATOR, size=1)

    async def try_in_vain() -> None:
        async with operator.transaction() as ours:
            await ours.command(impatience(engine))
            await rows(ours, call(engine, routine, ids))

    async with owner.transaction() as theirs:
        await rows(theirs, f"SELECT * FROM {SAGAS} WHERE event_id = 8 FOR UPDATE")
        with pytest.raises(TransientFailure):
            await try_in_vain()
    assert await stored(engine) == before
    async with operator.transaction() as ours:
        assert outcomes(await rows(ours, call(engine, routine, ids))) == ["started", "started"]


def impatience(engine: Database) -> str:
    return "SET LOCAL lock_timeout = '1ms'" if engine.family == "postgresql" else "SET innodb_lock_wait_timeout = 0"


NO_LISTS = {
    "postgresql": {
        "half a list": "'{%d'",
        "no list": "'%d'",
        "SQL after the list": "'{%d}; DROP TABLE events'",
        "SQL in the list": "'{%d OR 1=1}'",
        "a fraction": "'{%d.5}'",
        "a text": "'{%dabc}'",
        "an empty text": "''",
        "a number that is too big": "'{%d, 99999999999999999999}'",
    },
    "mysql": {
        "half a list": "'[%d'",
        "no list": "'%d'",
        "SQL after the list": "'[%d]; DROP TABLE events'",
        "SQL in the list": "'[\"%d OR 1=1\"]'",
        "a fraction": "'[%d.5]'",
        "a text": "'[\"%dabc\"]'",
        "an empty text": "''",
        "a list in the list": "'[[%d]]'",
        "an object": "'{\"id\": %d}'",
        "a truth": "'[%d, true]'",
        "a gap": "'[%d, , %d]'",
        "a comma too many": "'[%d,]'",
        "two numbers without a comma": "'[%d %d]'",
    },
}


@pytest.mark.parametrize("routine", ROUTINES)
async def test_what_is_no_list_of_numbers_is_an_error_that_leaves_nothing(engine: Database, routine: str) -> None:
    """Also nothing in the session that would stand in the way of the next call."""
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    before = await stored(engine)
    operator = await engine.open(OPERATOR, size=1)
    for what, text in NO_LISTS[engine.family].items():
        argument = text.replace("%d", str(id))
        question = (
            f"SELECT * FROM {routine}({argument})" if engine.family == "postgresql" else f"CALL {routine}({argument})"
        )
        with pytest.raises(StatementFailed):
            async with operator.transaction() as transaction:
                await rows(transaction, question)
        assert await stored(engine) == before, what
    async with operator.transaction() as transaction:
        assert outcomes(await rows(transaction, call(engine, routine, [id]))) == ["started"]


@pytest.mark.one_engine("mariadb", reason="PostgreSQL needs none")
@pytest.mark.parametrize("routine", ROUTINES)
async def test_a_finished_call_leaves_no_temporary_table(engine: Database, routine: str) -> None:
    (id,) = await ended(engine, routine, await new_subscription(engine), 7)
    operator = await engine.open(OPERATOR, size=1)
    async with operator.bare_session() as session:
        await session.command(call(engine, routine, [id]))
        with pytest.raises(StatementFailed, match="denied"):
            await session.command("SELECT * FROM next_generation")
