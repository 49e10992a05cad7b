"""`tidings run router` as a process, and the commands that look at routing before and make up for it afterwards."""

import os
import signal
from collections.abc import AsyncIterator, Callable

import pytest

from tests.roles.router.scene import Scene
from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.processes import Process, tidings
from tests.support.waiting import eventually
from tidings.roles.router.router import Router
from tidings.roles.routes import routers as admin

pytestmark = pytest.mark.slow


@pytest.fixture
async def scene(engine: Database) -> AsyncIterator[Scene]:
    """Open gates, a catch-all route and a subscription."""
    scene = Scene(engine, Router(await engine.open("event_router")))
    await scene.open_gates()
    await scene.route()
    await scene.subscription()
    yield scene
    await scene.close()


async def test_a_single_pass_routes_and_says_what_it_did(scene: Scene, shell: Shell) -> None:
    """A pass is one call and one transaction."""
    await scene.events(3)
    assert "routed: 3 events, 3 sagas, 0 tasks (3 sent)" in shell.says("run", "router", "--once")
    await scene.events(2)
    done = shell.json("run", "router", "--once")
    assert (done["outcome"], done["read"], done["sagas"], done["counts"]["sent"]) == ("routed", 2, 2, 2)
    assert "idle" in shell.says("run", "router", "--once")
    assert len(await scene.sagas()) == 5


async def test_a_single_pass_behind_a_closed_gate_is_a_clean_no_op(scene: Scene, shell: Shell) -> None:
    await scene.set_gate("routing", False)
    await scene.events(1)
    told = shell.says("run", "router", "--once")
    assert "closed" in told
    assert "tidings gates open routing" in told
    assert await scene.attempts() == []


async def test_a_router_that_holds_ends_with_1_and_says_what_to_do(scene: Scene, shell: Shell) -> None:
    await scene.events(1)
    await scene.drain()
    await scene.sql("UPDATE route_worker_cursors SET last_event_correlation_id = 'another'")
    told = shell.says("run", "router", "--once", exit=1)
    assert "held" in told
    assert "tidings routers confirm default" in told


async def test_the_router_of_one_domain_is_run_by_its_name(scene: Scene, shell: Shell) -> None:
    assert "routers add billing" in shell.says("run", "router", "--name", "billing", "--once", exit=1)
    await scene.drain()
    await admin.add(await scene.database.open("route_admin"), "billing", "billing", "test")
    await scene.open_gates("billing")
    await scene.events(1, domain="billing")
    assert "routed: 1 events" in shell.says("run", "router", "--name", "billing", "--once")


def test_what_can_not_be_run_is_refused(shell: Shell) -> None:
    assert "'baker' can't be run" in shell.says("run", "baker", exit=2)


@pytest.mark.parametrize("word", [signal.SIGTERM, signal.SIGINT])
async def test_a_router_runs_until_it_is_told_to_stop_and_ends_cleanly(
    scene: Scene, start: Callable[[Process], Process], word: signal.Signals
) -> None:
    router = start(tidings("run", "router", **scene.database.environment()))
    for count in (3, 6):
        await scene.events(3)

        async def is_routed(count: int = count) -> bool:
            return len(await scene.sagas()) == count

        await eventually(is_routed, timeout=30, what="the events to be routed")
    os.kill(router.pid, word)
    assert router.wait(30) == 0
    assert "Traceback" not in router.output


async def test_a_router_waits_for_its_gates_and_says_so_once(scene: Scene, start: Callable[[Process], Process]) -> None:
    await scene.set_gate("routing", False)
    await scene.events(2)
    router = start(tidings("run", "router", **scene.database.environment()))
    router.wait_for_line("router stands still", timeout=30)
    await scene.set_gate("routing", True)
    router.wait_for_line("router works again", timeout=30)

    async def is_routed() -> bool:
        return len(await scene.sagas()) == 2

    await eventually(is_routed, what="the events to be routed")
    assert router.output.count("router stands still") == 1


async def test_a_preview_shows_what_would_be_decided_and_writes_nothing(scene: Scene, shell: Shell) -> None:
    left_out = await scene.subscription("order.*", verified=False)
    off = await scene.route("order.off", enabled=False)
    await scene.route("order.*", target="task", task_biz_type="MAIL", dry_run=True)
    paid = await scene.event("order.paid")
    await scene.event("order.off")
    before = await scene.everything()
    by_event = shell.json("routes", "preview", "--event", str(paid))
    assert [(one["kind"], one["status"], one["matched"]) for one in by_event] == [
        ("webhook", "sent", 1),
        ("task", "dry_run", 1),
    ]
    assert by_event[0]["subscriptions"] == [1]
    assert by_event[0]["detail"] == f"left out: {left_out} (unverified)"
    newest = shell.json("routes", "preview", "--last", "1")
    assert [(one["route"], one["status"]) for one in newest if one["kind"] == "webhook"] == [(off, "disabled")]
    assert "route_disabled" in shell.says("routes", "preview")
    assert "There is no event 99" in shell.says("routes", "preview", "--event", "99", exit=1)
    assert await scene.everything() == before


async def test_dead_letters_of_routing_are_replayed_by_their_numbers(scene: Scene, shell: Shell) -> None:
    await scene.events(2)
    snapshot = (
        '{"id": 1, "event_domain": "default", "event_type": "order.paid", "event_stream": "", "correlation_id": "c"}'
    )
    await scene.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
        f" VALUES (1, 'default', 'wrk:default:-:1', '{snapshot}', 'refused')"
    )
    await scene.set_gate("routing", False)
    assert "Closed: gate routing" in shell.says("route-dead-letters", "replay", "1", exit=1)
    await scene.set_gate("routing", True)
    first, missing = shell.json("route-dead-letters", "replay", "1", "99", exit=1)
    assert (first["resolved"], first["statuses"], missing["resolved"]) == (True, ["sent"], False)
    assert "was resolved before" in shell.says("route-dead-letters", "replay", "1")
    assert await scene.sagas() == [(1, 1)]
    assert [action for action, *_ in await scene.audited()] == ["route_dead_letter.replayed"]


async def test_a_subscription_is_sent_what_it_missed(scene: Scene, shell: Shell) -> None:
    await scene.event(created_at="2020-01-01 00:00:00")
    await scene.events(3)
    await scene.drain()
    late = await scene.subscription()
    done = shell.json("subscriptions", "replay", str(late), "--since", "7d")
    assert done == {"id": late, "looked_at": 3, "made": 3, "refused": 0}
    told = shell.says("subscriptions", "replay", str(late), "--since", "2019-12-31T00:00:00Z")
    assert f"4 past events, 1 of them are now on their way to subscription {late}." in told
    assert len(await scene.sagas()) == 8
    assert "is no moment" in shell.says("subscriptions", "replay", str(late), "--since", "yesterday", exit=2)
    assert "There is no subscription 99" in shell.says("subscriptions", "replay", "99", "--since", "7d", exit=1)
