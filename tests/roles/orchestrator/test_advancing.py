"""The life of a saga: started, completed, tried again, given up; each result counts once (seed r01 §5–8)."""

import datetime

import pytest

from tests.roles.orchestrator.scene import JOBS, LETTERS, POLICY, SAGAS, Scene
from tidings.decisions.advancing import RetryPolicy
from tidings.decisions.retrying import Backoff, retry_delay
from tidings.roles.orchestrator.operations import OrchestratorOperations
from tidings.telemetry.notices import Notice, ResultIgnored, SagaDeadLettered

pytestmark = pytest.mark.slow


async def test_a_pending_saga_gets_its_first_job_and_is_in_progress(scene: Scene) -> None:
    """r01 §7.2: "create first job and move saga to InProgress"; ruling 2: for the time at which it was due."""
    saga = await scene.saga(await scene.subscription())
    assert (await scene.step()).started == 1
    row = await scene.one(SAGAS, saga)
    (job,) = await scene.all(JOBS)
    assert (row["status"], row["attempt_count"]) == ("InProgress", 0)
    assert (job["saga_id"], job["status"], job["attempt_no"]) == (saga, "Pending", 1)
    assert job["attempt_at"] == row["next_attempt_at"]
    assert not (await scene.step()).did_work


async def test_a_saga_whose_time_has_not_come_gets_no_job(scene: Scene) -> None:
    """r01 §7.3: next_attempt_at > now; also for a saga that was never tried."""
    subscription = await scene.subscription()
    await scene.saga(subscription, next_attempt_at="2100-01-01")
    await scene.saga(subscription, status="PendingRetry", attempt_count=1, next_attempt_at="2100-01-01")
    assert not (await scene.step()).did_work
    assert await scene.count(JOBS) == 0


async def test_a_saga_that_has_ended_or_has_a_job_gets_none(scene: Scene) -> None:
    """r01 §7.3."""
    subscription = await scene.subscription()
    for status in ("Completed", "DeadLettered", "InProgress"):
        await scene.saga(subscription, status=status, next_attempt_at="2020-01-01")
    assert not (await scene.step()).did_work
    assert await scene.count(JOBS) == 0


async def test_a_success_completes_the_saga_and_counts_as_an_attempt(scene: Scene) -> None:
    """r01 §8.2, ruling 3."""
    saga = await scene.saga(await scene.subscription())
    await scene.step()
    await scene.finish()
    assert (await scene.step()).completed == 1
    row = await scene.one(SAGAS, saga)
    assert (row["status"], row["attempt_count"], row["final_error_code"]) == ("Completed", 1, None)
    (job,) = await scene.all(JOBS)
    assert job["applied_at"] is not None
    assert row["updated_at"] > row["created_at"]
    assert not (await scene.step()).did_work


async def test_what_was_wrong_before_it_went_right_is_kept(scene: Scene) -> None:
    """Ruling 5: final_error_code stays when a saga completes."""
    saga = await scene.saga(await scene.subscription())
    await scene.fail("http_503")
    await scene.make_due()
    await scene.step()
    await scene.finish()
    await scene.step()
    row = await scene.one(SAGAS, saga)
    assert (row["status"], row["attempt_count"], row["final_error_code"]) == ("Completed", 2, "http_503")


async def test_a_failure_waits_for_its_time_and_then_gets_a_new_job(scene: Scene) -> None:
    """r01 §8.1 and §7.2; the old job stays as it was (§7.1)."""
    saga = await scene.saga(await scene.subscription())
    await scene.step()
    await scene.finish("http_500")
    assert (await scene.step()).retried == 1
    (first,) = await scene.all(JOBS)
    row = await scene.one(SAGAS, saga)
    assert (row["status"], row["attempt_count"], row["final_error_code"]) == ("PendingRetry", 1, "http_500")
    assert row["next_attempt_at"] - row["updated_at"] == datetime.timedelta(seconds=5)
    assert not (await scene.step()).did_work
    await scene.make_due()
    assert (await scene.step()).started == 1
    again = await scene.one(SAGAS, saga)
    old, new = await scene.all(JOBS)
    assert old == first
    assert (new["attempt_no"], new["status"], new["attempt_at"]) == (2, "Pending", again["next_attempt_at"])
    assert (again["status"], again["attempt_count"], again["final_error_code"]) == ("InProgress", 1, "http_500")


async def test_the_last_failure_buries_the_saga_with_what_the_event_said(scene: Scene) -> None:
    """r01 §8.1, r02 §3.1: the snapshot is the event's payload, byte for byte (ruling 12)."""
    payload = '{"b" : [1,  2.50, "é 雪"], "b":null}'
    saga = await scene.saga(await scene.subscription(), payload=payload)
    await scene.fail("dns_error")
    await scene.fail("http_500")
    assert (await scene.fail("timeout")).buried == 1
    row = await scene.one(SAGAS, saga)
    assert (row["status"], row["attempt_count"], row["final_error_code"]) == ("DeadLettered", 3, "timeout")
    (letter,) = await scene.all(LETTERS)
    assert (letter["saga_id"], letter["event_id"], letter["subscription_id"]) == (
        saga,
        row["event_id"],
        row["subscription_id"],
    )
    assert (letter["final_error_code"], letter["payload_snapshot"]) == ("timeout", payload)
    assert letter["failed_at"] >= row["updated_at"]
    assert await scene.count(JOBS) == 3
    await scene.make_due()
    assert not (await scene.step()).did_work


async def test_an_error_without_a_code_is_still_an_error(scene: Scene) -> None:
    saga = await scene.saga(await scene.subscription())
    await scene.step()
    await scene.sql(f"UPDATE {JOBS} SET status = 'Failed'")
    await scene.step()
    assert (await scene.one(SAGAS, saga))["final_error_code"] == "unknown"


async def test_each_retry_waits_as_the_formula_says(scene: Scene) -> None:
    """r01 §6.2, ruling 4: with the saga's own id, from the database's now."""
    backoff = Backoff(base=7, longest=10, jitter=0.5)
    scene.orchestrator = await scene.another(RetryPolicy(9, backoff))
    subscription = await scene.subscription()
    sagas = [await scene.saga(subscription) for _ in range(3)]
    for attempts in (1, 2):
        await scene.fail()
        for saga in sagas:
            row = await scene.one(SAGAS, saga)
            waits = (row["next_attempt_at"] - row["updated_at"]).total_seconds()
            assert waits == pytest.approx(retry_delay(backoff, saga, attempts), abs=2e-6)


async def test_what_the_endpoint_asked_for_wins_if_it_is_longer(scene: Scene) -> None:
    """Ruling 4: Retry-After, up to a day."""
    saga = await scene.saga(await scene.subscription())
    for asked, waits in ((3, 5), (600, 600)):
        await scene.fail(retry_after=asked)
        row = await scene.one(SAGAS, saga)
        assert row["next_attempt_at"] - row["updated_at"] == datetime.timedelta(seconds=waits)


async def test_nobody_can_ask_for_more_than_a_day(scene: Scene) -> None:
    saga = await scene.saga(await scene.subscription())
    await scene.fail(retry_after=2_000_000)
    row = await scene.one(SAGAS, saga)
    assert row["next_attempt_at"] - row["updated_at"] == datetime.timedelta(days=1)


async def test_the_next_time_is_strictly_later_also_when_the_clock_went_back(scene: Scene) -> None:
    """Ruling 2. A job that answers to a time in the future is what a clock that went back leaves behind."""
    subscription = await scene.subscription()
    saga = await scene.saga(subscription, status="InProgress", attempt_count=1, next_attempt_at="2100-01-01")
    await scene.sql(
        f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no, status, error_code)"
        f" VALUES ({saga}, {subscription}, '2100-01-01', 2, 'Failed', 'timeout')"
    )
    before = (await scene.one(SAGAS, saga))["next_attempt_at"]
    assert (await scene.step()).retried == 1
    after = (await scene.one(SAGAS, saga))["next_attempt_at"]
    assert before < after < before + datetime.timedelta(seconds=1)


async def test_every_attempt_has_another_time(scene: Scene) -> None:
    """Ruling 2: else uniq_job_saga_attempt would refuse the next job."""
    scene.orchestrator = await scene.another(RetryPolicy(6, Backoff(0.000001, 0.000001, 0)))
    saga = await scene.saga(await scene.subscription())
    for _ in range(6):
        await scene.step()
        await scene.finish("http_500")
        await scene.step()
    times = [job["attempt_at"] for job in await scene.all(JOBS)]
    assert len(times) == 6
    assert times == sorted({*times})
    assert (await scene.one(SAGAS, saga))["status"] == "DeadLettered"


async def test_a_subscriptions_own_settings_win_over_those_of_all(scene: Scene) -> None:
    """r01 §6.3, and each of them by itself."""
    cases = {
        await scene.subscription(): ("PendingRetry", 5),
        await scene.subscription(max_retry_limit=1): ("DeadLettered", None),
        await scene.subscription(base_delay_seconds=0.25): ("PendingRetry", 0.25),
        await scene.subscription(max_retry_limit=2, base_delay_seconds=40): ("PendingRetry", 40),
    }
    sagas = {subscription: await scene.saga(subscription) for subscription in cases}
    await scene.fail()
    for subscription, (status, waits) in cases.items():
        row = await scene.one(SAGAS, sagas[subscription])
        assert row["status"] == status
        if waits is not None:
            assert (row["next_attempt_at"] - row["updated_at"]).total_seconds() == waits


async def test_a_change_of_settings_holds_for_the_next_result(scene: Scene) -> None:
    subscription = await scene.subscription()
    saga = await scene.saga(subscription)
    await scene.step()
    await scene.sql(f"UPDATE subscriptions SET base_delay_seconds = 77 WHERE id = {subscription}")
    await scene.finish("timeout")
    await scene.step()
    row = await scene.one(SAGAS, saga)
    assert row["next_attempt_at"] - row["updated_at"] == datetime.timedelta(seconds=77)


async def test_a_limit_that_was_lowered_meanwhile_buries_when_due(scene: Scene, told: list[Notice]) -> None:
    """Ruling 3; and the notice carries the last job, its worker and its lease."""
    subscription = await scene.subscription(max_retry_limit=9)
    saga = await scene.saga(subscription)
    await scene.fail("http_500")
    await scene.fail("http_404")
    await scene.sql(f"UPDATE subscriptions SET max_retry_limit = 2 WHERE id = {subscription}")
    assert not (await scene.step()).did_work
    await scene.make_due()
    done = await scene.step()
    assert (done.buried, done.started) == (1, 0)
    row = await scene.one(SAGAS, saga)
    assert (row["status"], row["attempt_count"], row["final_error_code"]) == ("DeadLettered", 2, "http_404")
    (letter,) = await scene.all(LETTERS)
    assert (letter["saga_id"], letter["final_error_code"], letter["payload_snapshot"]) == (
        saga,
        "http_404",
        '{"a":  1}',
    )
    last = (await scene.all(JOBS))[-1]
    (buried,) = [one for one in told if isinstance(one, SagaDeadLettered)]
    assert (buried.job_id, buried.worker_id, buried.lease_expiration) == (last["id"], "w", str(last["lease_until"]))
    assert (buried.error_code, buried.attempt_count) == ("http_404", 2)
    assert await scene.count(JOBS) == 2


async def test_a_limit_that_was_raised_meanwhile_gives_more_attempts(scene: Scene) -> None:
    subscription = await scene.subscription(max_retry_limit=2)
    await scene.saga(subscription)
    await scene.fail()
    await scene.sql(f"UPDATE subscriptions SET max_retry_limit = 3 WHERE id = {subscription}")
    assert (await scene.fail()).retried == 1


@pytest.mark.parametrize("held", ["paused = true", "active = false", "verified = false"])
async def test_sagas_of_who_may_not_be_sent_to_wait_without_losing_an_attempt(scene: Scene, held: str) -> None:
    """Catalogue G2: first attempts and retries alike, and nothing is lost when it goes on."""
    subscription, other = await scene.subscription(), await scene.subscription()
    await scene.saga(subscription)
    await scene.fail()
    await scene.saga(subscription)
    await scene.saga(other)
    await scene.make_due()
    before = [row for row in await scene.all(SAGAS) if row["subscription_id"] == subscription]
    await scene.sql(f"UPDATE subscriptions SET {held} WHERE id = {subscription}")
    assert (await scene.step()).started == 1
    assert not (await scene.step()).did_work
    assert [row for row in await scene.all(SAGAS) if row["subscription_id"] == subscription] == before
    await scene.sql("UPDATE subscriptions SET paused = false, active = true, verified = true")
    assert (await scene.step()).started == 2
    assert await scene.by_status() == {"InProgress": 3}


@pytest.mark.parametrize("held", ["paused = true", "active = false", "verified = false"])
async def test_the_result_of_a_job_that_was_under_way_is_still_taken_in(scene: Scene, held: str) -> None:
    """Catalogue G2: running finishes."""
    subscription = await scene.subscription()
    await scene.saga(subscription)
    await scene.step()
    await scene.sql(f"UPDATE subscriptions SET {held} WHERE id = {subscription}")
    await scene.finish()
    assert (await scene.step()).completed == 1


@pytest.mark.parametrize("status", ["Pending", "PendingRetry", "Completed", "DeadLettered"])
async def test_a_result_the_saga_does_not_wait_for_changes_nothing_and_is_seen_once(
    scene: Scene, told: list[Notice], status: str
) -> None:
    """r01 §2.3 and §6.4: it is marked, so that nobody looks at it again."""
    subscription = await scene.subscription()
    saga = await scene.saga(subscription, next_attempt_at="2100-01-01")
    await scene.sql(
        f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no, status, error_code)"
        f" VALUES ({saga}, {subscription}, '2020-01-01', 1, 'Failed', 'timeout')"
    )
    await scene.sql(f"UPDATE {SAGAS} SET status = '{status}' WHERE id = {saga}")
    before = await scene.one(SAGAS, saga)
    assert (await scene.step()).ignored == 1
    assert [one.saga_status for one in told if isinstance(one, ResultIgnored)] == [status]
    assert await scene.one(SAGAS, saga) == before
    assert (await scene.all(JOBS))[0]["applied_at"] is not None
    assert not (await scene.step()).did_work


async def test_two_results_of_one_saga_are_taken_in_one_after_the_other(scene: Scene) -> None:
    """What no worker can bring about, and would count twice if both met the saga as it was."""
    saga = await scene.saga(await scene.subscription())
    await scene.step()
    await scene.finish("http_500")
    await scene.sql(
        f"INSERT INTO {JOBS} (saga_id, subscription_id, attempt_at, attempt_no, status)"
        f" SELECT saga_id, subscription_id, '2020-01-01', 2, 'Completed' FROM {JOBS}"
    )
    first, second = await scene.step(), await scene.step()
    assert (first.retried, first.completed, first.ignored) == (1, 0, 0)
    assert (second.retried, second.completed, second.ignored) == (0, 0, 1)
    row = await scene.one(SAGAS, saga)
    assert (row["status"], row["attempt_count"]) == ("PendingRetry", 1)


async def test_the_same_result_marked_again_changes_nothing(scene: Scene) -> None:
    """r01 §2.3: whoever comes second finds that it was applied, and may not apply it again."""
    await scene.saga(await scene.subscription())
    await scene.step()
    await scene.finish("http_500")
    (job,) = await scene.all(JOBS)
    await scene.step()
    before = await scene.all(JOBS), await scene.all(SAGAS)
    engine = await scene.database.open("saga_orchestrator")
    assert await OrchestratorOperations.step(engine, lambda operations: operations.mark_applied([job["id"]])) == 0
    assert await OrchestratorOperations.step(engine, lambda operations: operations.finished_jobs(0, 10)) == []
    assert (await scene.all(JOBS), await scene.all(SAGAS)) == before


async def test_lease_columns_are_left_alone(scene: Scene) -> None:
    """r01 §4.2: "Process job leases" is what a saga must not do."""
    await scene.saga(await scene.subscription())
    await scene.step()
    await scene.sql(
        f"UPDATE {JOBS} SET status = 'Leased', lease_until = '2020-01-01', lease_token = 9, worker_id = 'w'"
    )
    before = await scene.all(JOBS)
    assert not (await scene.step()).did_work
    assert await scene.all(JOBS) == before


async def test_events_and_subscriptions_stay_as_they_are(scene: Scene) -> None:
    """r01 §4.2: through a whole life, from the first job to the grave."""
    await scene.saga(await scene.subscription())
    before = await scene.all("events"), await scene.all("subscriptions")
    for _ in range(POLICY.max_retry_limit):
        await scene.fail()
    assert await scene.by_status() == {"DeadLettered": 1}
    assert (await scene.all("events"), await scene.all("subscriptions")) == before
