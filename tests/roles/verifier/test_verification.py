"""Endpoint verification (seed 002, phase 3): a signed challenge, and an answer that must still be wanted."""

import asyncio
import json
from collections.abc import Callable

import pytest

from tests.roles.verifier.scene import OTHER_SECRET, SECRET, Scene, challenge_in, echoing, proving
from tests.support.receiver import Answer, Received
from tests.support.waiting import eventually
from tidings.decisions import verifying
from tidings.errors import LimitReached, NotFound, SubscriptionRefused
from tidings.model.endpoint_check import CheckKind, CheckOutcome
from tidings.processes import endpoint_calls, task_limits
from tidings.roles.subscriptions import actions
from tidings.roles.task_worker.worker import TaskWorker
from tidings.roles.verifier import calling
from tidings.settings import load_settings
from tidings.telemetry.notices import EndpointChecked, EndpointUnusable, Notice
from tidings.vault import Vault


async def test_an_endpoint_that_proves_that_it_knows_the_secret_is_verified(scene: Scene) -> None:
    id = await scene.subscription(headers={"x-key": "private"})
    scene.receiver.answer("/hook", proving())
    assert await scene.verify(id) is CheckOutcome.PASSED
    assert await scene.is_verified(id)
    (request,) = scene.receiver.requests
    request.verify(SECRET)
    assert request.message.startswith("vrf_")
    assert request.headers["tidings-event-type"] == "endpoint.verification"
    assert json.loads(request.body)["data"]["subscription"] == id
    assert (await scene.audited())[-2:] == [
        ("test", "subscription.verification_asked"),
        ("verifier", "subscription.verified"),
    ]


async def test_the_headers_of_a_subscription_are_not_shown_to_who_is_not_verified(scene: Scene) -> None:
    """They are write-only: whoever may change a URL must not be able to have them sent to themselves."""
    id = await scene.subscription(headers={"x-key": "private"})
    await scene.verify(id)
    (request,) = scene.receiver.requests
    assert "private" not in str(request)


async def test_the_task_carries_subscription_and_challenge(scene: Scene) -> None:
    """In its key, `{subscription}:{challenge}`."""
    id = await scene.subscription()
    check = await scene.check(await scene.ask(id))
    (task,) = await scene.database.sql("SELECT biz_type, biz_key, status FROM sys_pending_tasks")
    assert tuple(task.values()) == ("subscription.verify", f"{id}:{check['challenge']}", 0)
    assert len(check["challenge"]) == 43


async def test_an_endpoint_of_the_mode_echo_says_the_challenge_back(scene: Scene) -> None:
    id = await scene.subscription(verification="echo")
    scene.receiver.answer("/hook", echoing)
    assert await scene.verify(id) is CheckOutcome.PASSED
    assert await scene.is_verified(id)


async def test_each_secret_that_is_valid_may_prove(scene: Scene) -> None:
    """A receiver may change its secret in peace, also while it is verified."""
    id = await scene.subscription()
    admin = await scene.database.open("subscription_admin")
    await actions.rotate_secret(admin, id, actor="test", vault=scene.vault, secret=OTHER_SECRET)
    scene.receiver.answer("/hook", proving(SECRET))
    assert await scene.verify(id) is CheckOutcome.PASSED


REFUSED: dict[str, Answer | Callable[[Received], Answer]] = {
    "an echo is no proof": echoing,
    "another secret": proving(OTHER_SECRET),
    "nothing": Answer(body=b""),
    "ok": Answer(),
    "a failure with the right proof": proving(status=500),
    "a redirect": proving(status=302, headers={"location": "/elsewhere"}),
    "a challenge of its own": Answer(body=b'{"challenge": "x", "proof": "x"}'),
    "too long": lambda received: Answer(body=proving()(received).body[:-1] + b', "x": "' + b"x" * 5000 + b'"}'),
    "broken off": Answer(resets=True),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_whatever_else_it_answers_it_is_not_verified_and_nobody_is_told_why(scene: Scene, what: str) -> None:
    """A person who may name any URL must learn nothing about what is there."""
    id = await scene.subscription()
    scene.receiver.answer("/hook", REFUSED[what])
    check = await scene.ask(id)
    assert await scene.call(check) is CheckOutcome.FAILED
    assert not await scene.is_verified(id)
    stored = await scene.check(check)
    assert (stored["outcome"], stored["error_code"], stored["duration_ms"]) == ("failed", None, None)
    assert len(scene.receiver.requests) == 1


async def test_what_an_endpoint_answered_is_stored_nowhere_and_only_told_to_the_operator(
    scene: Scene, told: list[Notice]
) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", Answer(status=403, body=b"a word from the inside"))
    await scene.verify(id)
    for table in ("endpoint_checks", "sys_pending_tasks", "subscriptions", "audit_log"):
        assert "inside" not in str([dict(row) for row in await scene.database.sql(f"SELECT * FROM {table}")])
    (notice,) = [one for one in told if isinstance(one, EndpointChecked)]
    assert (notice.outcome, notice.response_status, notice.error_code) == ("failed", 403, "http_403")


async def test_an_endpoint_that_does_not_answer_in_time_is_not_verified(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calling, "SECONDS_TO_ANSWER", 0.2)
    id = await scene.subscription()
    scene.receiver.answer("/hook", Answer(hangs=True))
    assert await scene.verify(id) is CheckOutcome.TIMEOUT
    assert not await scene.is_verified(id)


async def test_an_address_that_must_not_be_called_is_not_called(scene: Scene) -> None:
    """The same guard as for deliveries, at the moment of connecting: the allow lists may have changed."""
    id = await scene.subscription()
    assert await scene.call(await scene.ask(id), guarded=True) is CheckOutcome.BLOCKED
    assert scene.receiver.requests == []
    assert not await scene.is_verified(id)


async def under_way(scene: Scene, id: int, hold: asyncio.Event) -> "asyncio.Task[CheckOutcome]":
    """A verification whose request has arrived and is held."""
    scene.receiver.answer("/hook", proving(hold=hold))
    arrived = len(scene.receiver.requests)
    task = asyncio.create_task(scene.verify(id))
    await eventually(lambda: len(scene.receiver.requests) > arrived, what="the challenge to arrive")
    return task


async def test_a_url_that_was_changed_while_it_was_verified_is_not_verified(scene: Scene) -> None:
    """A result counts only if URL and challenge are still the current ones."""
    id = await scene.subscription()
    hold = asyncio.Event()
    task = await under_way(scene, id, hold)
    await scene.edit(id, callback_url=scene.receiver.url("/other"))
    hold.set()
    assert await task is CheckOutcome.OUTDATED
    row = await scene.row(id)
    assert not row["verified"]
    assert row["pending_callback_url"] == scene.receiver.url("/other")


async def test_a_url_in_force_is_not_replaced_by_one_that_was_replaced(scene: Scene) -> None:
    id = await scene.subscription("/first")
    scene.receiver.answer("/first", proving())
    await scene.verify(id)
    await scene.edit(id, callback_url=scene.receiver.url("/hook"))
    hold = asyncio.Event()
    task = await under_way(scene, id, hold)
    await scene.edit(id, callback_url=scene.receiver.url("/third"))
    hold.set()
    assert await task is CheckOutcome.OUTDATED
    row = await scene.row(id)
    assert (row["callback_url"], bool(row["verified"])) == (scene.receiver.url("/first"), True)
    assert row["pending_callback_url"] == scene.receiver.url("/third")


async def test_a_newer_challenge_makes_the_older_one_void(scene: Scene) -> None:
    id = await scene.subscription()
    hold = asyncio.Event()
    task = await under_way(scene, id, hold)
    newer = await scene.ask(id)
    hold.set()
    assert await task is CheckOutcome.OUTDATED
    assert not await scene.is_verified(id)
    assert await scene.call(newer) is CheckOutcome.PASSED
    assert await scene.is_verified(id)


async def test_another_way_of_verification_makes_the_answer_void(scene: Scene) -> None:
    id = await scene.subscription()
    hold = asyncio.Event()
    task = await under_way(scene, id, hold)
    await scene.edit(id, verification="echo")
    hold.set()
    assert await task is CheckOutcome.OUTDATED
    assert not await scene.is_verified(id)


async def test_a_challenge_that_expired_is_not_even_sent(scene: Scene) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", proving())
    check = await scene.ask(id)
    await scene.database.sql(f"UPDATE endpoint_checks SET expires_at = '2020-01-01' WHERE id = {check}")
    assert await scene.call(check) is CheckOutcome.OUTDATED
    assert scene.receiver.requests == []


async def test_a_challenge_that_expired_under_way_counts_no_more(scene: Scene) -> None:
    id = await scene.subscription()
    hold = asyncio.Event()
    task = await under_way(scene, id, hold)
    await scene.database.sql("UPDATE endpoint_checks SET expires_at = '2020-01-01'")
    hold.set()
    assert await task is CheckOutcome.OUTDATED
    assert not await scene.is_verified(id)


async def test_a_challenge_is_used_once(scene: Scene) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", Answer())
    check = await scene.ask(id)
    assert await scene.call(check) is CheckOutcome.FAILED
    scene.receiver.answer("/hook", proving())
    assert await scene.call(check) is CheckOutcome.FAILED
    assert len(scene.receiver.requests) == 1
    assert not await scene.is_verified(id)


async def test_a_caller_that_died_on_the_way_is_followed_by_another(scene: Scene) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", Answer(hangs=True))
    check = await scene.ask(id)
    dying = asyncio.create_task(scene.call(check))
    await eventually(lambda: scene.receiver.requests, what="the challenge to arrive")
    dying.cancel()
    await asyncio.wait([dying])
    scene.receiver.answer("/hook", proving())
    assert await scene.call(check) is CheckOutcome.PASSED


async def test_a_new_url_is_put_in_force_when_it_has_answered_and_not_before(scene: Scene) -> None:
    id = await scene.subscription("/first")
    scene.receiver.answer("/first", proving())
    await scene.verify(id)
    await scene.edit(id, callback_url=scene.receiver.url("/hook"))
    assert (await scene.row(id))["callback_url"] == scene.receiver.url("/first")
    scene.receiver.answer("/hook", proving())
    assert await scene.verify(id) is CheckOutcome.PASSED
    row = await scene.row(id)
    assert (row["callback_url"], row["pending_callback_url"]) == (scene.receiver.url("/hook"), None)


async def test_what_is_verified_is_not_asked_again(scene: Scene) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", proving())
    await scene.verify(id)
    assert await scene.ask(id) is None
    assert await scene.database.value("SELECT COUNT(*) FROM endpoint_checks") == 1


async def test_a_subscription_is_asked_five_times_an_hour(scene: Scene) -> None:
    id = await scene.subscription()
    for _ in range(5):
        await scene.ask(id)
    with pytest.raises(LimitReached):
        await scene.ask(id)
    assert await scene.database.value("SELECT COUNT(*) FROM sys_pending_tasks") == 5
    await scene.database.sql("UPDATE endpoint_checks SET created_at = '2020-01-01'")
    assert await scene.ask(id) is not None
    # What no limit counts any more is forgotten.
    assert await scene.database.value("SELECT COUNT(*) FROM endpoint_checks") == 1


async def test_a_host_is_asked_so_often_for_whomever(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody shall use us to flood others, with however many subscriptions."""
    monkeypatch.setitem(verifying.ALLOWANCES, CheckKind.VERIFICATION, verifying.Allowance(5, 3))
    for number in range(3):
        await scene.ask(await scene.subscription(f"/{number}"))
    last = await scene.subscription("/last")
    with pytest.raises(LimitReached, match=r"127\.0\.0\.1"):
        await scene.ask(last)
    assert await scene.ask(await scene.subscription(callback_url="https://example.com/hook")) is not None


async def test_who_is_to_be_trusted_is_not_called(scene: Scene) -> None:
    id = await scene.subscription(verification="none")
    with pytest.raises(SubscriptionRefused):
        await scene.ask(id)
    for unknown in (0, 999, 2**63):
        with pytest.raises(NotFound):
            await scene.ask(unknown)


async def test_secrets_that_can_not_be_opened_send_nothing(scene: Scene, told: list[Notice]) -> None:
    id = await scene.subscription()
    check = await scene.ask(id)
    scene.vault = Vault(["another key"])
    assert await scene.call(check) is CheckOutcome.FAILED
    assert scene.receiver.requests == []
    assert any(isinstance(one, EndpointUnusable) for one in told)


async def test_the_task_is_run_by_the_verifier_under_its_own_login(scene: Scene) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", proving())
    await scene.ask(id)
    engine = await scene.database.open("subscription_verifier", size=3)
    handlers = endpoint_calls(await scene.caller())
    worker = TaskWorker(engine, handlers, "verifier:test", task_limits(load_settings(environ={})))
    try:
        assert await worker.step()
        await eventually(lambda: scene.is_verified(id), what="the verification")
    finally:
        await worker.close()
    assert await scene.database.value("SELECT status FROM sys_pending_tasks") == 2


async def test_a_challenge_carries_no_credentials_and_no_number_of_an_attempt(scene: Scene) -> None:
    id = await scene.subscription()
    scene.receiver.answer("/hook", proving())
    await scene.verify(id)
    (request,) = scene.receiver.requests
    assert request.headers.keys() & {"cookie", "authorization", "tidings-attempt"} == set()
    assert challenge_in(request) == (await scene.check(1))["challenge"]
