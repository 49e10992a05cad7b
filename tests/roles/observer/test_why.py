"""`why` says where an event or a delivery is, what it waits for, and what would change it."""

import datetime
from pathlib import Path

import pytest

from tests.roles.observer.world import ONE_ATTEMPT, TWO_ATTEMPTS, World
from tests.support.commands import run
from tests.support.database import Database
from tests.support.sessions import connect
from tidings.errors import InputRefused, NotFound
from tidings.flow import OWNER
from tidings.model.explanation import Explanation
from tidings.roles.dead_letters.requeueing import requeue
from tidings.roles.observer.why import why
from tidings.roles.subscriptions import actions

LIMIT = 2


@pytest.fixture
async def world(engine: Database) -> World:
    made = World(engine, TWO_ATTEMPTS)
    await made.set()
    for process in ("router", "orchestrator", "worker", "cleaner"):
        await made.sql(
            "INSERT INTO worker_presence (worker_id, process, host, pid, version)"
            f" VALUES ('{process}', '{process}', 'h', 1, '1')"
        )
    return made


async def asked(world: World, subject: str) -> Explanation:
    return await why(await world.database.open("observer"), subject, LIMIT)


async def told(world: World, subject: str) -> str:
    """All of it in one text."""
    return _text(await asked(world, subject))


def _text(answer: Explanation) -> str:
    own = [f"{reason.text} {reason.remedy}" for reason in answer.reasons]
    return "\n".join([answer.headline, *own, *map(_text, answer.parts)])


async def gone(world: World, process: str) -> None:
    await world.sql(f"DELETE FROM worker_presence WHERE process = '{process}'")


async def test_it_says_that_no_router_covers_an_event(world: World) -> None:
    await world.publish()
    text = await told(world, "event:1")
    assert "has not been routed yet" in text
    assert "No router covers the domain default. tidings routers add" in text


async def test_it_names_the_gate_that_is_closed_and_who_closed_it(world: World) -> None:
    await world.route()
    await world.sql(
        "UPDATE gates SET is_open = false, reason = 'a flood', changed_by = 'cli:eve' WHERE name = 'routing'"
    )
    await world.publish()
    answer = await asked(world, "event:1")
    assert "The gate routing was closed by cli:eve: a flood tidings gates open routing" in _text(answer)
    assert any(reason.since for reason in answer.reasons if "gate" in reason.text)


async def test_it_says_how_far_the_router_has_come_and_whether_one_runs(world: World) -> None:
    await world.publish()
    await world.route()
    await world.publish()
    assert "Router default has come to event 1." in await told(world, "event:2")
    await gone(world, "router")
    assert "No router is running. tidings run router" in await told(world, "event:2")


async def test_it_says_that_no_route_matched(world: World) -> None:
    await world.sql("DELETE FROM routes")
    await world.publish()
    await world.route()
    assert "No route matched it. tidings routes add --type order.paid" in await told(world, "event:1")


async def test_it_names_the_subscriptions_that_were_left_out(world: World) -> None:
    await world.sql("UPDATE subscriptions SET verified = false")
    await world.publish()
    await world.route()
    text = await told(world, "event:1")
    assert "no verified and active subscription matched (left out: 1 (unverified), 2 (unverified))" in text
    assert "tidings subscriptions replay" in text


async def test_it_tells_a_dry_run_from_a_route_that_is_off(world: World) -> None:
    await world.sql("UPDATE routes SET dry_run = true")
    await world.publish()
    await world.route()
    assert "a dry run, it would be 2 deliveries" in await told(world, "event:1")
    await world.sql("UPDATE routes SET enabled = false")
    await world.publish()
    await world.route()
    assert "is switched off" in await told(world, "event:2")


async def test_it_says_that_a_transaction_may_still_bring_the_event(world: World) -> None:
    producer = await connect(world.database.url(OWNER))
    await producer.run("BEGIN")
    await producer.run("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")
    await world.publish()
    await world.route()
    assert "Its number was drawn by a transaction that may still be open." in await told(world, "event:1")
    await producer.run("ROLLBACK")
    await producer.close()
    assert "nobody has committed one" in await told(world, "event:99")


async def test_it_follows_a_delivery_from_its_start_to_its_end(world: World) -> None:
    await world.publish()
    await world.route()
    assert "It is due." in await told(world, "saga:1")
    await gone(world, "orchestrator")
    assert "No orchestrator is running. tidings run orchestrator" in await told(world, "saga:1")
    await world.advance()
    assert "It waits for a worker with a free slot." in await told(world, "saga:1")
    await gone(world, "worker")
    assert "No worker is running." in await told(world, "saga:1")
    await world.sql("UPDATE webhook_delivery_jobs SET status = 'Leased', worker_id = 'w-7', lease_until = '2100-01-01'")
    assert "Worker w-7 has it until" in await told(world, "saga:1")
    await world.sql("UPDATE webhook_delivery_jobs SET lease_until = '2020-01-01'")
    await gone(world, "cleaner")
    text = await told(world, "saga:1")
    assert "The lease of worker w-7 ended without a result." in text
    assert "No cleaner is running." in text
    await world.sql("UPDATE webhook_delivery_jobs SET status = 'Pending'")
    await world.report()
    assert "The worker reported success; the orchestrator takes it in next." in await told(world, "saga:1")
    await world.advance()
    answer = await asked(world, "saga:1")
    assert (answer.headline, answer.is_over) == ("Delivered to subscription 1, at attempt 1.", True)
    text = await told(world, "saga:2")
    assert "Attempt 1 of 2 failed: http_503." in text
    assert "The next attempt is due in 60 min" in text
    assert "1 of its 2 deliveries are not over yet." in await told(world, "event:1")


async def test_it_says_why_a_delivery_was_given_up_and_that_it_was_requeued(world: World) -> None:
    world.policy = ONE_ATTEMPT
    await world.deliver(1)
    answer = await asked(world, "saga:2")
    assert (answer.headline, answer.is_over) == ("Given up to subscription 2: http_503.", True)
    assert "tidings dead-letters requeue 1" in _text(answer)
    operator = await world.database.open("dead_letter_operator")
    await requeue(operator, [1], "cli:ann")
    assert "It was requeued as saga 3." in await told(world, "saga:2")


async def test_it_says_who_paused_the_subscription_of_a_delivery(world: World) -> None:
    await actions.pause(await world.database.open("subscription_admin"), 1, actor="cli:ann")
    await world.publish()
    await world.route()
    answer = await asked(world, "saga:1")
    assert "Subscription 1 was paused by cli:ann. tidings subscriptions resume 1" in _text(answer)
    (held,) = [reason for reason in answer.reasons if "paused" in reason.text]
    assert held.since is not None
    assert held.since <= datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=5)


async def test_it_follows_a_task_from_its_start_to_its_end(world: World) -> None:
    await world.sql("INSERT INTO sys_pending_tasks (biz_type, biz_key) VALUES ('MAIL', '1')")
    text = await told(world, "task:1")
    assert "Waits to be run: MAIL." in text
    assert "No task-worker is running. tidings run task-worker" in text
    await world.sql("UPDATE sys_pending_tasks SET next_run_time = '2100-01-01'")
    assert "It is due in" in await told(world, "task:1")
    await world.sql(
        "UPDATE sys_pending_tasks"
        " SET status = 3, retry_count = 1, result_msg = 'no answer', next_run_time = '2020-01-01'"
    )
    assert "Run 1 of 4 failed: no answer" in await told(world, "task:1")
    await world.sql("UPDATE sys_pending_tasks SET status = 1, worker_id = 'w-9'")
    text = await told(world, "task:1")
    assert "Run 2 of MAIL is under way." in text
    assert "Worker w-9 gave its last sign of life." in text
    await world.sql("UPDATE sys_pending_tasks SET status = 4, result_msg = 'Max retries exceeded: no answer'")
    answer = await asked(world, "task:1")
    assert (answer.headline, answer.is_over) == ("Given up: MAIL.", True)
    assert "Max retries exceeded: no answer tidings tasks retry 1" in _text(answer)
    await world.sql("INSERT INTO sys_pending_tasks_history (id, biz_type, biz_key, status) VALUES (7, 'MAIL', '2', 2)")
    assert (await asked(world, "task:7")).headline == "Done: MAIL."
    with pytest.raises(NotFound, match="There is no task 5"):
        await asked(world, "task:5")


@pytest.mark.parametrize(
    "subject",
    ["event", "event:", "event:x", "event:0", "saga:-1", "thing:1", f"saga:{2**63}", f"task:{'9' * 5_000}"],
    ids=range(8),
)
async def test_a_subject_that_is_none_is_refused(world: World, subject: str) -> None:
    with pytest.raises(InputRefused, match="nothing that can be asked about"):
        await asked(world, subject)


async def test_a_saga_that_is_not_there_is_not_found(world: World) -> None:
    with pytest.raises(NotFound, match="There is no saga 5"):
        await asked(world, "saga:5")


@pytest.mark.slow
async def test_the_command_tells_people_and_machines(world: World, tmp_path: Path) -> None:
    await world.deliver(1)
    environment = world.database.environment()
    assert "saga:1  Delivered to subscription 1" in run("why", "event:1", cwd=tmp_path, env=environment).stdout
    assert '"is_over": false' in run("why", "event:1", "--json", cwd=tmp_path, env=environment).stdout
    assert "saga:34" in run("why", "what", cwd=tmp_path, exit=2, env=environment).stderr
