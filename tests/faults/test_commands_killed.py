"""A person's command that dies anywhere and is given again has done all of its work, and done it once.

Requeue and resend of a few, a requeue of many, the replay of a routing dead letter, and what a subscription missed.
"""

import datetime
import json
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.roles.dead_letters.scene import EVERYTHING, Scene
from tests.roles.router.scene import Scene as RoutingScene
from tests.support.commands import Shell
from tests.support.database import Database
from tests.support.fault_proxy import CUT, KILL, Fault, FaultProxy
from tests.support.processes import Process, tidings
from tidings.db.engine import Engine
from tidings.errors import DatabaseError
from tidings.roles.dead_letters.requeueing import begin, cancel, requeue, resend
from tidings.roles.router import backfill as backfill_module
from tidings.roles.router.backfill import backfill
from tidings.roles.router.replay import replay
from tidings.roles.router.router import Router

pytestmark = pytest.mark.slow

LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
Act = Callable[[Engine], Awaitable[object]]


async def statements_of(act: Act, engine: Engine, proxy: FaultProxy) -> list[Fault]:
    """A fault before each statement of the command, and one after it."""
    proxy.clear()
    await act(engine)
    return [Fault(name, CUT, when) for name in dict.fromkeys(proxy.seen) for when in ("before", "after")]


async def dies(act: Act, engine: Engine, proxy: FaultProxy, fault: Fault) -> None:
    proxy.clear()
    proxy.arm(fault)
    # A connection that was lost before the first question is replaced without a word.
    with suppress(DatabaseError):
        await act(engine)
    assert proxy.fired == [fault]


@pytest.fixture
async def scene(engine: Database) -> Scene:
    return Scene(engine, await engine.open("dead_letter_operator"))


@pytest.mark.parametrize("act", [requeue, resend])
async def test_an_operator_who_dies_at_any_statement_can_ask_again_and_makes_one_saga_of_each(
    scene: Scene, proxy: FaultProxy, mortal: None, act: Callable[..., Awaitable[object]]
) -> None:
    """Sagas and audit are one transaction: both are there, or neither."""
    subscription = await scene.subscription()
    make = scene.letters if act is requeue else scene.ended
    wrong = []
    engine = await scene.database.open("dead_letter_operator", proxy)
    ids = await make(subscription, 2)
    for fault in await statements_of(lambda it: act(it, ids, "ann"), engine, proxy):
        sagas, audits = len(await scene.next_generation()), len(await scene.audited())
        new = await make(subscription, 2)
        await dies(partial(act, ids=new, actor="ann"), engine, proxy, fault)
        done = len(await scene.next_generation()) - sagas, len(await scene.audited()) - audits
        if done not in ((0, 0), (2, 1)):
            wrong.append(f"{fault}: {done} sagas and audits")
        await act(scene.engine, new, "ann")
        if (made := len(await scene.next_generation()) - sagas) != 2:
            wrong.append(f"{fault}: {made} new sagas")
    assert not wrong


async def test_a_mass_requeue_is_stored_once_or_not_at_all(scene: Scene, proxy: FaultProxy) -> None:
    """Not even where the operator hears nothing of its commit: what is not known is not done a second time."""
    await scene.letters(await scene.subscription(), 2)
    wrong = []

    async def act(engine: Engine) -> None:
        await begin(engine, EVERYTHING, 10, "ann")

    engine = await scene.database.open("dead_letter_operator", proxy)
    for fault in await statements_of(act, engine, proxy):
        stored, audits = len(await scene.all("mass_requeues")), len(await scene.audited())
        await dies(act, engine, proxy, fault)
        done = len(await scene.all("mass_requeues")) - stored, len(await scene.audited()) - audits
        if done not in ((0, 0), (1, 1)):
            wrong.append(f"{fault}: {done} operations and audits")
    assert not wrong


async def test_a_mass_requeue_is_cancelled_once_wherever_the_operator_dies(
    scene: Scene, proxy: FaultProxy, mortal: None
) -> None:
    wrong = []
    engine = await scene.database.open("dead_letter_operator", proxy)
    first = await begin(scene.engine, EVERYTHING, 10, "ann")
    for fault in await statements_of(lambda it: cancel(it, first, "ann"), engine, proxy):
        mass = await begin(scene.engine, EVERYTHING, 10, "ann")
        await dies(partial(cancel, mass_id=mass, actor="ann"), engine, proxy, fault)
        status = (await cancel(scene.engine, mass, "ann")).status
        told = [one for one in await scene.audited() if one[1:] == ("mass_requeue.cancelled", f"mass_requeue:{mass}")]
        if (status, len(told)) != ("cancelled", 1):
            wrong.append(f"{fault}: {status}, told {len(told)} times")
    assert not wrong


@pytest.mark.parametrize(
    ("count", "every", "kills"),
    # Of 100,000 there are 200 batches: the last of the deaths comes shortly before the end.
    [(1_000, 1, 2), pytest.param(100_000, 38, 5, marks=[pytest.mark.full, pytest.mark.timeout(900)])],
)
@pytest.mark.parametrize(
    "statement", ["dead_letters.move_mass", pytest.param("dead_letters.requeue", marks=pytest.mark.full)]
)
async def test_a_requeue_of_many_that_is_killed_half_way_is_resumed_and_doubles_nothing(
    scene: Scene,
    proxy: FaultProxy,
    start: Callable[[Process], Process],
    tmp_path: Path,
    statement: str,
    count: int,
    every: int,
    kills: int,
) -> None:
    """H4: the real process and SIGKILL, again and again; how far it has come is to be seen meanwhile."""
    shell = Shell(scene.database, tmp_path)
    subscription = await scene.subscription()
    for _ in range(0, count, 1_000):
        await scene.letters(subscription, 1_000)
    proxied = {"TIDINGS_DATABASE_URL_DEAD_LETTER_OPERATOR": proxy.url(scene.database.url("dead_letter_operator"))}
    words = ["dead-letters", "requeue", "--all", "--yes", "--rate", "10000" if count > 1_000 else "1000"]
    before = 0
    for _ in range(kills):
        # The batch in which it dies is undone: the one before it counts.
        proxy.arm(Fault(statement, KILL(), "after", nth=every + 1))
        doomed = start(tidings(*words, **shell.environment | proxied))
        await proxy.until_fired(120)
        assert doomed.wait() == -signal.SIGKILL, doomed.output
        proxy.clear()
        (stands,) = shell.json("dead-letters", "requeues")
        assert (stands["status"], stands["total"]) == ("running", count)
        assert before < stands["started_count"] < count
        assert await generations(scene) == {1: stands["started_count"]}
        before = stands["started_count"]
        words = ["dead-letters", "resume", str(stands["id"])]
    done = shell.json(*words)
    assert (done["requeued"], done["already"], done["refused"]) == (count, 0, 0)
    assert await generations(scene) == {1: count}


async def generations(scene: Scene) -> dict[int, int]:
    """How many dead letters have so many successors; those without one are not counted."""
    rows = await scene.sql(
        "SELECT n.made, COUNT(*) AS letters FROM (SELECT COUNT(*) AS made FROM webhook_delivery_sagas"
        " WHERE generation > 0 GROUP BY event_id, subscription_id) n GROUP BY n.made"
    )
    return {row["made"]: row["letters"] for row in rows}


@pytest.fixture
async def routing(engine: Database) -> AsyncIterator[RoutingScene]:
    """Gates open, a catch-all webhook route, one who wants everything, and a cursor."""
    made = RoutingScene(engine, Router(await engine.open("event_router")))
    await made.open_gates()
    await made.route()
    await made.drain()
    yield made
    await made.close()


async def test_a_replay_of_a_dead_letter_that_dies_at_any_statement_is_asked_again_and_sends_once(
    routing: RoutingScene, proxy: FaultProxy, mortal: None
) -> None:
    await routing.subscription()
    wrong = []

    async def letter() -> tuple[int, int]:
        """An event that was set aside; the dead letter's id and the event's."""
        event = await routing.event(correlation_id="c")
        await routing.sql("UPDATE route_worker_cursors SET position = position + 1")
        fields = {"id": event, "event_domain": "default", "event_type": "order.paid", "event_stream": ""}
        snapshot = json.dumps({**fields, "correlation_id": "c", "payload": "{}"})
        await routing.sql(
            "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
            f" VALUES ({event}, 'default', 'wrk:default:-:{event}', '{snapshot}', 'poison')"
        )
        return int(await routing.value("SELECT MAX(id) FROM route_dead_letters")), event

    engine = await routing.database.open("event_router", proxy)
    first, _ = await letter()
    for fault in await statements_of(lambda it: replay(it, first, "ann"), engine, proxy):
        new, event = await letter()
        await dies(partial(replay, dead_letter_id=new, actor="ann"), engine, proxy, fault)
        await replay(await routing.engine(), new, "ann")
        sagas = await counted(routing, "webhook_delivery_sagas", f"event_id = {event}")
        attempts = await counted(routing, "route_attempts", f"event_id = {event} AND status = 'sent'")
        if (sagas, attempts) != (1, 1):
            wrong.append(f"{fault}: {sagas} sagas, {attempts} attempts")
        if (await routing.letters())[-1]["resolution"] != "sent":
            wrong.append(f"{fault}: not resolved")
    assert not wrong


async def test_what_a_subscription_missed_is_made_up_for_once_wherever_that_dies(
    routing: RoutingScene, proxy: FaultProxy, mortal: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_module, "PAUSE", 0.0)
    await routing.events(3)
    await routing.drain()
    wrong = []

    async def fill(engine: Engine, subscription: int) -> None:
        async for _ in backfill(engine, subscription, LONG_AGO, "ann", batch=2):
            pass

    engine = await routing.database.open("event_router", proxy)
    first = await routing.subscription("order.*")
    for fault in await statements_of(lambda it: fill(it, first), engine, proxy):
        late = await routing.subscription("order.*")
        await dies(partial(fill, subscription=late), engine, proxy, fault)
        await fill(await routing.engine(), late)
        sagas = await counted(routing, "webhook_delivery_sagas", f"subscription_id = {late}")
        attempts = await counted(routing, "route_attempts", f"worker_name = 'replay:{late}'")
        if (sagas, attempts) != (3, 3):
            wrong.append(f"{fault}: {sagas} sagas, {attempts} attempts")
    assert not wrong


async def counted(routing: RoutingScene, table: str, where: str) -> int:
    return int(await routing.value(f"SELECT COUNT(*) FROM {table} WHERE {where}"))
