"""Subscriptions that change while their events are on the way, with every role as a real process.

The rows G of docs/reference/failures.md: what was promised to a subscriber is kept, whatever is edited meanwhile.
"""

import asyncio
import datetime
from ipaddress import ip_network

import pytest

from tests.chaos.checker.ledgers import Subscription
from tests.roles.worker.scene import SECOND_SECRET, SECRET
from tests.scenarios.delivery.stage import KEY, Stage
from tests.support.receiver import Answer
from tests.support.waiting import eventually
from tidings.decisions.destinations import DestinationRules
from tidings.decisions.subscribing import SubscriptionRules
from tidings.roles.subscriptions import actions
from tidings.roles.verifier.actions import trust
from tidings.roles.verifier.operations import VerifierOperations
from tidings.vault import Vault

pytestmark = pytest.mark.slow

RULES = SubscriptionRules(DestinationRules(http_hosts=("127.0.0.1",), networks=(ip_network("127.0.0.0/8"),)))
SAGAS, JOBS = "webhook_delivery_sagas", "webhook_delivery_jobs"


async def edit(stage: Stage, subscriber: Subscription, **given: object) -> None:
    admin = await stage.database.open("subscription_admin")
    await actions.edit(admin, subscriber.id, given, actor="test", rules=RULES, vault=Vault([KEY]))


async def rotate(stage: Stage, subscriber: Subscription, vault: Vault, secret: str) -> None:
    admin = await stage.database.open("subscription_admin")
    await actions.rotate_secret(admin, subscriber.id, actor="test", vault=vault, secret=secret)


async def ends(stage: Stage) -> list[tuple[str, int]]:
    rows = await stage.database.sql(f"SELECT status, attempt_count FROM {SAGAS} ORDER BY id")
    return [(row["status"], row["attempt_count"]) for row in rows]


async def test_a_subscription_that_is_switched_off_in_flight_loses_nothing(stage: Stage) -> None:
    """Catalogue G1, ruling 11: what is under way is finished and recorded; the rest waits, no attempt is used up."""
    stage.receiver.answer("/hook", Answer(hold=(hold := asyncio.Event())))
    hook = await stage.subscriber("/hook", max_in_flight=2)
    await stage.publish(5)
    worker = stage.run("worker")
    stage.run("router", "orchestrator", "cleaner")
    await stage.until_requests(2)
    admin = await stage.database.open("subscription_admin")
    await actions.deactivate(admin, hook.id, actor="test")
    # What waits in the worker goes back, and whoever leases it learns that nothing may be sent.
    stopping = asyncio.create_task(stage.stop(worker))
    await stage.until_jobs(3, "Pending")
    hold.set()
    assert await stopping == 0
    stage.run("worker")

    async def are_put_off() -> bool:
        rows = await stage.database.sql(f"SELECT created_at, lease_until FROM {JOBS} WHERE status = 'Pending'")
        return [row["lease_until"] - row["created_at"] > datetime.timedelta(seconds=25) for row in rows] == [True] * 3

    await eventually(are_put_off, 20, "the other jobs to be put off")
    assert len(stage.receiver.requests) == 2
    assert sorted(await ends(stage)) == [("Completed", 1)] * 2 + [("InProgress", 0)] * 3
    await actions.activate(admin, hook.id, actor="test")
    await stage.database.sql(f"UPDATE {JOBS} SET lease_until = created_at WHERE status = 'Pending'")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert await ends(stage) == [("Completed", 1)] * 5


async def test_what_a_paused_subscription_missed_comes_at_its_own_pace_when_it_is_resumed(stage: Stage) -> None:
    """G2 and G7: sagas wait without losing an attempt, others do not wait for them, and nobody is flooded."""
    stage.receiver.answer("/held", Answer(delay=0.005))
    held = await stage.subscriber("/held", max_in_flight=3)
    await stage.subscriber("/free")
    admin = await stage.database.open("subscription_admin")
    await actions.pause(admin, held.id, actor="test")
    for _ in range(4):
        await stage.publish(50)
    stage.run("router", "orchestrator", "worker", "cleaner")
    await stage.until_requests(200, "/free")
    assert stage.receiver.at("/held") == []
    waiting = f"FROM {SAGAS} WHERE subscription_id = {held.id} AND status = 'Pending' AND attempt_count = 0"
    assert await stage.database.value(f"SELECT COUNT(*) {waiting}") == 200
    assert await stage.database.value(f"SELECT COUNT(*) FROM {JOBS} WHERE subscription_id = {held.id}") == 0
    await actions.resume(admin, held.id, actor="test")
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert stage.receiver.most_open["/held"] <= 3
    assert {*await ends(stage)} == {("Completed", 1)}


async def test_a_new_url_is_used_when_it_is_verified_and_the_old_one_until_then(stage: Stage) -> None:
    """Catalogue G3: the verified one stays in force, so that an edit drops nothing."""
    stage.receiver.answer("/old", Answer(503))
    hook = await stage.subscriber("/old", verification="none", max_retry_limit=100)
    await stage.publish()
    stage.run("router", "orchestrator", "worker", TIDINGS_MAX_DELAY_SECONDS="100ms")
    await stage.until_requests(1, "/old")
    await edit(stage, hook, callback_url=stage.receiver.url("/new"))
    await stage.until_requests(len(stage.receiver.at("/old")) + 2, "/old")
    assert stage.receiver.at("/new") == []
    verifier = await stage.database.open("subscription_verifier")
    await VerifierOperations.step(verifier, lambda it: trust(it, hook.id, actor="test", rules=RULES.destinations))
    await stage.until_at_rest()
    (arrived,) = stage.receiver.at("/new")
    arrived.verify(SECRET)
    # The same message, and one more attempt of it.
    assert {one.message for one in stage.receiver.requests} == {arrived.message}
    assert arrived.attempt == len(stage.receiver.requests)
    assert stage.receiver.requests[-1] == arrived


async def test_a_secret_that_is_rotated_under_way_is_known_to_receivers_of_either(stage: Stage) -> None:
    """G4: each request is signed with every secret that is valid when it is sent."""
    hook = await stage.subscriber("/hook")
    stage.run("router", "orchestrator", "worker")
    await stage.publish(10)
    await stage.until_requests(10)
    await rotate(stage, hook, Vault([KEY]), SECOND_SECRET)
    await stage.publish(10)
    await stage.until_at_rest()
    # The checker's receiver knows the old secret alone.
    assert await stage.problems() == []
    signatures = [one.headers["webhook-signature"].split(" ") for one in stage.receiver.requests]
    assert [len(signed) for signed in signatures] == [1] * 10 + [2] * 10
    for one in stage.receiver.requests[10:]:
        one.verify(SECOND_SECRET)


async def test_the_key_ring_is_rotated_while_workers_run_and_every_secret_opens(stage: Stage) -> None:
    """G5: the new key is given to the workers first, as one that opens; then it seals; then the old one may go last."""
    new = "a-newer-key-of-the-scenarios"
    one = await stage.subscriber("/one")
    await stage.subscriber("/two")
    stage.run("router", "orchestrator")
    workers = [stage.run("worker", TIDINGS_SECRET_KEYS=f"{KEY},{new}")]
    await stage.publish(5)
    await stage.until_requests(10)
    await rotate(stage, one, Vault([new, KEY]), SECOND_SECRET)
    workers.append(stage.run("worker", TIDINGS_SECRET_KEYS=f"{new},{KEY}"))
    await stage.publish(20)
    await stage.until_at_rest()
    assert await stage.problems() == []
    assert not any("can't be opened" in worker.output for worker in workers)
    for request in stage.receiver.at("/one")[5:]:
        request.verify(SECOND_SECRET)


async def test_a_changed_filter_holds_for_events_that_are_routed_later(stage: Stage) -> None:
    """G6: what was routed before is still delivered, though the subscription no longer asks for such events."""
    hook = await stage.subscriber("/hook", "order.*")
    before = await stage.publish(3)
    stage.run("router", "orchestrator")
    await stage.until_jobs(3, "Pending")
    await edit(stage, hook, event_type="invoice.*")
    await stage.publish(2)
    after = await stage.publish(2, "invoice.sent")
    stage.run("worker")
    await stage.until_requests(5)
    await stage.until_at_rest()
    assert {*stage.arrived()} == {one.correlation_id for one in (*before, *after)}
    assert len(stage.receiver.requests) == 5
