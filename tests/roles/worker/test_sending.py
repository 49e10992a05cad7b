"""What goes out for a job, and what is stored of what came back (seed r02 §2.3)."""

import time

import pytest

from tests.roles.worker.scene import SECOND_SECRET, SECRET, Scene
from tests.support.engine_words import Words
from tests.support.receiver import Answer
from tidings.telemetry.notices import EndpointUnusable, Notice
from tidings.vault import Vault, seal_headers

pytestmark = pytest.mark.slow


async def test_an_event_arrives_byte_for_byte_and_signed(scene: Scene) -> None:
    """The signature is checked by the reference library."""
    payload = '{"b" : [1,  2.50], "ü": "é", "b": 1e400}'
    (job,) = await scene.jobs(await scene.subscription("/hook"), payload=payload, attempt_no=3)
    async with scene.working(await scene.worker()):
        await scene.finished([job])
    (request,) = scene.receiver.requests
    assert request.body == payload.encode()
    request.verify(SECRET)
    (event,) = await scene.sql("SELECT event_type, correlation_id FROM events")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["tidings-event-type"] == event["event_type"]
    assert request.headers["tidings-correlation-id"] == event["correlation_id"]
    assert request.headers["tidings-attempt"] == "3"
    assert request.headers["webhook-id"].startswith("msg_")


async def test_the_time_of_a_request_is_the_servers_however_wrong_the_clock_here_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receivers refuse what is signed five minutes ago, or five minutes ahead."""
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 600)
    (job,) = await scene.jobs(await scene.subscription())
    async with scene.working(await scene.worker()):
        await scene.finished([job])
    (request,) = scene.receiver.requests
    assert abs(int(request.headers["webhook-timestamp"]) - right()) < 10


async def test_a_success_is_stored_with_what_was_answered(scene: Scene) -> None:
    """r02 §2.3: "Success → Completed, set response_status"."""
    scene.receiver.answer("/", Answer(201, b"thanks", delay=0.02))
    (job,) = await scene.jobs(await scene.subscription())
    async with scene.working(await scene.worker()):
        await scene.finished([job])
    row = await scene.job(job)
    assert (row["status"], row["response_status"], row["error_code"]) == ("Completed", 201, None)
    assert bytes(row["response_excerpt"]) == b"thanks"
    assert 20 <= row["duration_ms"] < 5000
    assert row["finished_at"] is not None
    assert row["applied_at"] is None
    assert row["worker_id"] == "worker1"


async def test_a_failure_is_stored_with_status_excerpt_and_retry_after(scene: Scene) -> None:
    """r02 §2.3: "Failure → Failed, set error_code"; ruling 5: the status is kept, too."""
    scene.receiver.answer("/", Answer(503, b"later\x00\xff", {"retry-after": "120"}))
    (job,) = await scene.jobs(await scene.subscription())
    async with scene.working(await scene.worker()):
        await scene.finished([job])
    row = await scene.job(job)
    assert (row["status"], row["response_status"], row["error_code"]) == ("Failed", 503, "http_503")
    assert (bytes(row["response_excerpt"]), row["retry_after"]) == (b"later\x00\xff", 120)


@pytest.mark.parametrize(
    ("answer", "error_code"),
    [
        (Answer(302, headers={"location": "/elsewhere"}), "http_302"),
        (Answer(410), "http_410"),
        (Answer(resets=True), "connection_lost"),
        (Answer(hangs=True), "timeout"),
    ],
)
async def test_the_worker_reports_a_failure_and_decides_nothing(scene: Scene, answer: Answer, error_code: str) -> None:
    """r02 §2.3: it must not touch the saga, make jobs, or decide about retries and dead letters."""
    scene.receiver.answer("/", answer)
    (job,) = await scene.jobs(await scene.subscription(timeout_seconds=1))
    before = await scene.sql("SELECT * FROM webhook_delivery_sagas")
    async with scene.working(await scene.worker()):
        await scene.finished([job])
    row = await scene.job(job)
    assert (row["status"], row["error_code"]) == ("Failed", error_code)
    assert await scene.sql("SELECT * FROM webhook_delivery_sagas") == before
    assert await scene.statuses() == {"Failed": 1}
    assert not await scene.sql("SELECT * FROM dead_letters")
    assert len(scene.receiver.requests) == 1


async def test_of_a_huge_answer_only_the_beginning_is_read_and_kept(scene: Scene) -> None:
    scene.receiver.answer("/", Answer(200, b"x" * 20_000_000))
    (job,) = await scene.jobs(await scene.subscription())
    async with scene.working(await scene.worker()):
        await scene.finished([job])
    row = await scene.job(job)
    assert row["status"] == "Completed"
    assert bytes(row["response_excerpt"]) == b"x" * 1024


async def test_each_attempt_has_the_same_id_and_its_own_number(scene: Scene) -> None:
    """Ruling 18: stable over attempts, and different for each event and subscription."""
    one, other = await scene.subscription("/one"), await scene.subscription("/other")
    (first,) = await scene.jobs(one)
    (second,) = await scene.jobs(other)
    async with scene.working(await scene.worker()):
        await scene.finished([first, second])
        await scene.sql(
            "INSERT INTO webhook_delivery_jobs (saga_id, subscription_id, attempt_at, attempt_no)"
            f" SELECT saga_id, subscription_id, finished_at, 2 FROM webhook_delivery_jobs WHERE id = {first}"
        )
        await scene.finished([int(await scene.database.value("SELECT MAX(id) FROM webhook_delivery_jobs"))])
    tries, others = scene.receiver.at("/one"), scene.receiver.at("/other")
    assert [one.attempt for one in tries] == [1, 2]
    assert len({one.message for one in tries}) == 1
    assert tries[0].message != others[0].message


async def test_a_rotated_secret_signs_from_the_next_attempt_on_beside_the_old_one(scene: Scene) -> None:
    """Catalogue G4: during the overlap receivers with either secret can verify."""
    subscription = await scene.subscription()
    jobs = await scene.jobs(subscription)
    async with scene.working(await scene.worker()):
        await scene.finished(jobs)
        await scene.set_secrets(subscription, (SECOND_SECRET, 0, 3600), (SECRET, 60, 0))
        await scene.finished(await scene.jobs(subscription))
        await scene.set_secrets(subscription, (SECOND_SECRET, 100, 60), (SECRET, 200, 0))
        await scene.finished(await scene.jobs(subscription))
    before, during, after = scene.receiver.requests
    before.verify(SECRET)
    during.verify(SECRET)
    during.verify(SECOND_SECRET)
    after.verify(SECOND_SECRET)
    for request, secret in ((before, SECOND_SECRET), (after, SECRET)):
        with pytest.raises(Exception, match="signature"):
            request.verify(secret)


async def test_secrets_that_can_not_be_opened_stop_nobody_else(scene: Scene, told: list[Notice]) -> None:
    locked, fine = await scene.subscription("/locked"), await scene.subscription("/fine")
    await scene.set_secrets(locked, (SECRET, 0, 0), vault=Vault(["another key"]))
    (stuck,), jobs = await scene.jobs(locked), await scene.jobs(fine, 3)
    async with scene.working(await scene.worker()):
        await scene.finished(jobs)
    assert scene.receiver.at("/locked") == []
    row = await scene.job(stuck)
    assert (row["status"], row["lease_resets"], row["error_code"]) == ("Pending", 0, None)
    assert {one.subscription_id for one in told if isinstance(one, EndpointUnusable)} == {locked}


async def test_headers_of_the_subscription_go_with_each_request(scene: Scene) -> None:
    subscription = await scene.subscription()
    literal = Words(scene.database).binary(seal_headers(scene.vault, subscription, {"x-tenant": "blue"}))
    await scene.sql(f"UPDATE subscriptions SET headers = {literal} WHERE id = {subscription}")
    jobs = await scene.jobs(subscription)
    async with scene.working(await scene.worker()):
        await scene.finished(jobs)
    assert scene.receiver.requests[0].headers["x-tenant"] == "blue"
