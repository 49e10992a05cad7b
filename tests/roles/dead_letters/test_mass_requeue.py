"""A requeue of many is a stored operation: looked at first, paced, cancelled, and gone on with after a death."""

import asyncio
import datetime
import time
from functools import partial

import pytest

from tests.roles.dead_letters.scene import EVER, EVERYTHING, NEVER, SAGAS, Scene
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tidings.db import engine as engine_module
from tidings.errors import DatabaseError, InputRefused, NotFound
from tidings.model.dead_letter import MassRequeueStatus
from tidings.roles.dead_letters.operations import DeadLetterOperations, Filter, MassRequeue
from tidings.roles.dead_letters.requeueing import MOST_AT_ONCE, begin, cancel, go_on, look, preview, requeue, run

pytestmark = pytest.mark.slow

RUNNING, DONE, CANCELLED = MassRequeueStatus


def counts(mass: MassRequeue) -> tuple[int, int, int]:
    return mass.started_count, mass.already_count, mass.refused_count


async def finished(scene: Scene, mass_id: int, most: int = 100) -> MassRequeue:
    while (mass := await go_on(scene.engine, mass_id, most)).status is RUNNING:
        pass
    return mass


async def test_a_preview_tells_how_many_and_which_would_be_refused(scene: Scene) -> None:
    """Ruling 1: those are listed apart; nothing happens yet."""
    good = await scene.subscription()
    inactive, unverified = await scene.subscription(active=False), await scene.subscription(verified=False)
    await scene.letters(good, 5)
    await scene.letters(inactive, 2)
    letters = await scene.letters(unverified, 3)
    seen = await preview(scene.engine, EVERYTHING)
    assert (seen.total, seen.last_id) == (10, letters[-1])
    assert seen.refused == {inactive: (False, 2), unverified: (True, 3)}
    assert await scene.next_generation() == []
    assert await scene.all("mass_requeues") == []


async def test_a_preview_of_nothing_is_nothing(scene: Scene) -> None:
    seen = await preview(scene.engine, EVERYTHING)
    assert (seen.total, seen.last_id, seen.refused) == (0, 0, {})


async def test_to_begin_only_stores_what_is_to_be_done(scene: Scene) -> None:
    letters = await scene.letters(await scene.subscription(), 3)
    mass_id = await begin(scene.engine, EVERYTHING, 50, "ann")
    (row,) = await scene.all("mass_requeues")
    assert (row["status"], row["rate"], row["requested_by"], row["total"]) == ("running", 50, "ann", 3)
    assert (row["position"], row["last_id"]) == (0, letters[-1])
    assert await scene.next_generation() == []
    assert await scene.audited() == [("ann", "mass_requeue.begun", f"mass_requeue:{mass_id}")]


@pytest.mark.parametrize("rate", [0, -1, 10_001])
async def test_a_rate_that_is_none_is_refused(scene: Scene, rate: int) -> None:
    with pytest.raises(InputRefused) as refused:
        await begin(scene.engine, EVERYTHING, rate, "ann")
    assert refused.value.field == "rate"
    assert await scene.all("mass_requeues") == []


async def test_it_goes_on_by_as_many_as_it_is_told_and_shows_how_far_it_has_come(scene: Scene) -> None:
    """The rate is the pace of inserts: whoever runs it asks for so many at a time."""
    letters = await scene.letters(await scene.subscription(), 25)
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
    first = await go_on(scene.engine, mass_id, 10)
    assert (first.status, first.position, counts(first), first.handled) == (RUNNING, letters[9], (10, 0, 0), 10)
    assert len(await scene.next_generation()) == 10
    await go_on(scene.engine, mass_id, 10)
    last = await go_on(scene.engine, mass_id, 10)
    assert (last.status, last.position, counts(last)) == (DONE, letters[-1], (25, 0, 0))
    assert last.handled == last.total == 25
    after = await go_on(scene.engine, mass_id, 10)
    assert after == last
    assert len(await scene.next_generation()) == 25


async def test_it_keeps_to_its_rate_and_tells_how_it_stands(scene: Scene) -> None:
    await scene.letters(await scene.subscription(), 20)
    mass_id = await begin(scene.engine, EVERYTHING, 20, "ann")
    told: list[int] = []
    began = time.monotonic()
    mass = await run(scene.engine, mass_id, lambda stands: told.append(stands.handled))
    assert time.monotonic() - began >= 1.0 - 1 / 4
    assert (mass.status, counts(mass)) == (DONE, (20, 0, 0))
    assert told == [5, 10, 15, 20, 20]
    assert await run(scene.engine, mass_id, lambda stands: told.append(-1)) == mass == await look(scene.engine, mass_id)


async def test_never_more_than_a_batch_at_once(scene: Scene) -> None:
    await scene.letters(await scene.subscription(), MOST_AT_ONCE + 1)
    mass_id = await begin(scene.engine, EVERYTHING, 10_000, "ann")
    assert (await go_on(scene.engine, mass_id, 10_000)).handled == MOST_AT_ONCE
    assert (await go_on(scene.engine, mass_id, 10_000)).status is DONE


async def test_what_was_requeued_before_and_what_is_refused_is_counted_apart(scene: Scene) -> None:
    letters = await scene.letters(await scene.subscription(), 4)
    await scene.letters(await scene.subscription(active=False), 2)
    await scene.letters(await scene.subscription(verified=False), 1)
    await requeue(scene.engine, letters[:1], "bob")
    mass = await finished(scene, await begin(scene.engine, EVERYTHING, 10, "ann"))
    assert (mass.total, counts(mass)) == (7, (3, 1, 3))
    assert len(await scene.next_generation()) == 4


async def test_dead_letters_that_come_later_are_not_part_of_it(scene: Scene) -> None:
    subscription = await scene.subscription()
    await scene.letters(subscription, 2)
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
    await scene.letters(subscription, 3)
    assert counts(await finished(scene, mass_id)) == (2, 0, 0)
    assert counts(await finished(scene, await begin(scene.engine, EVERYTHING, 10, "ann"))) == (3, 2, 0)


async def test_with_nothing_to_do_it_is_done_at_once(scene: Scene) -> None:
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
    assert (await go_on(scene.engine, mass_id, 10)).status is DONE


async def test_filters_take_what_they_name_and_nothing_else(scene: Scene) -> None:
    one, other = await scene.subscription(), await scene.subscription()
    of_one = await scene.letters(one, 2, "timeout", "2026-01-10")
    refused = await scene.letters(one, 1, "http_410", "2026-01-20")
    of_other = await scene.letters(other, 1, "timeout", "2026-01-30")
    january = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 10, 15, 20, 31)]
    cases = {
        Filter(EVER, NEVER): {*of_one, *refused, *of_other},
        Filter(EVER, NEVER, subscription_id=one): {*of_one, *refused},
        Filter(EVER, NEVER, error_code="timeout"): {*of_one, *of_other},
        Filter(EVER, NEVER, one, "timeout"): {*of_one},
        Filter(january[2], NEVER): {*refused, *of_other},
        Filter(EVER, january[2]): {*of_one},
        Filter(january[1], january[3]): {*of_one, *refused},
        Filter(january[4], NEVER): set(),
        Filter(EVER, NEVER, error_code="TIMEOUT"): set(),
        Filter(EVER, NEVER, subscription_id=99): set(),
    }
    for filter, expected in cases.items():
        assert (await preview(scene.engine, filter)).total == len(expected)
        mass = await DeadLetterOperations.step(scene.engine, partial(_stored, filter=filter))
        found = await DeadLetterOperations.step(
            scene.engine, partial(DeadLetterOperations.next_letters, mass=mass, limit=100)
        )
        assert {*found} == expected, filter
        assert mass.filter == filter


async def _stored(operations: DeadLetterOperations, filter: Filter) -> MassRequeue:
    _, last_id = await operations.count_letters(filter, 100)
    mass = await operations.mass(await operations.insert_mass(filter, 1, "ann", 0, last_id))
    assert mass is not None
    return mass


async def test_cancelled_it_stops_and_leaves_the_rest_dead(scene: Scene) -> None:
    await scene.letters(await scene.subscription(), 10)
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
    await go_on(scene.engine, mass_id, 4)
    assert (await cancel(scene.engine, mass_id, "bob")).status is CANCELLED
    after = await go_on(scene.engine, mass_id, 4)
    assert (after.status, counts(after)) == (CANCELLED, (4, 0, 0))
    assert len(await scene.next_generation()) == 4
    await cancel(scene.engine, mass_id, "bob")
    assert [action for _, action, _ in await scene.audited()] == ["mass_requeue.begun", "mass_requeue.cancelled"]


async def test_what_is_done_can_not_be_cancelled(scene: Scene) -> None:
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
    await finished(scene, mass_id)
    assert (await cancel(scene.engine, mass_id, "bob")).status is DONE
    assert len(await scene.audited()) == 1


async def test_one_that_does_not_exist_is_said_to_be_missing(scene: Scene) -> None:
    for act in (go_on(scene.engine, 4711, 1), cancel(scene.engine, 4711, "ann")):
        with pytest.raises(NotFound, match="requeues"):
            await act


async def test_several_that_run_it_at_once_never_double(scene: Scene) -> None:
    """Each batch is done by one of them; the counts are those of the letters."""
    await scene.letters(await scene.subscription(), 300)
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")

    async def work() -> None:
        engine = await scene.operator()
        while (await go_on(engine, mass_id, 7)).status is RUNNING:
            pass

    await asyncio.gather(work(), work(), work())
    mass = await finished(scene, mass_id)
    assert (mass.status, counts(mass)) == (DONE, (300, 0, 0))
    assert len(await scene.next_generation()) == 300


async def test_killed_anywhere_in_the_middle_it_is_gone_on_with_and_nothing_is_doubled(
    scene: Scene, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catalogue H4: before and after each of its statements, and in its commit; what was counted is what was done."""
    subscription = await scene.subscription()
    attacked = await scene.database.open("dead_letter_operator", through=proxy)
    await scene.letters(subscription, 3)
    mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
    proxy.clear()
    while (await go_on(attacked, mass_id, 2)).status is RUNNING:
        pass
    statements = [*dict.fromkeys(proxy.seen)]
    assert "dead_letters.requeue" in statements
    monkeypatch.setattr(engine_module, "_ATTEMPTS", 1)
    wrong = []
    for fault in [Fault(name, CUT, when) for name in statements for when in ("before", "after")]:
        before = len(await scene.next_generation())
        letters = await scene.letters(subscription, 5)
        mass_id = await begin(scene.engine, EVERYTHING, 10, "ann")
        await scene.sql(f"UPDATE mass_requeues SET position = {letters[0] - 1}, total = 5 WHERE id = {mass_id}")
        proxy.clear()
        proxy.arm(fault)
        try:
            while (await go_on(attacked, mass_id, 2)).status is RUNNING:
                pass
        except DatabaseError:
            pass
        assert proxy.fired == [fault]
        await _until_unlocked(scene, mass_id)
        mass = await finished(scene, mass_id, 2)
        if (mass.status, counts(mass), len(await scene.next_generation()) - before) != (DONE, (5, 0, 0), 5):
            wrong.append((fault, mass))
    await attacked.close()
    assert not wrong


async def _until_unlocked(scene: Scene, mass_id: int) -> None:
    """Until the server has noticed that the one who held it is gone: whoever asks for the row waits for that."""
    await scene.sql(f"UPDATE mass_requeues SET rate = rate + 1 WHERE id = {mass_id}")


async def test_a_stored_one_is_all_that_is_needed_to_go_on(scene: Scene) -> None:
    """Its filter, its place and its rate come from the table, whoever asks and wherever."""
    await scene.letters(await scene.subscription(), 2, "timeout")
    await scene.letters(await scene.subscription(), 2, "http_500")
    mass_id = await begin(scene.engine, Filter(EVER, NEVER, error_code="http_500"), 10, "ann")
    await go_on(scene.engine, mass_id, 1)
    assert counts(await finished(Scene(scene.database, await scene.operator()), mass_id)) == (2, 0, 0)
    rows = await scene.sql(
        f"SELECT d.final_error_code AS code FROM {SAGAS} n"
        f" JOIN {SAGAS} o ON o.event_id = n.event_id AND o.generation = 0"
        " JOIN dead_letters d ON d.saga_id = o.id WHERE n.generation = 1"
    )
    assert [row["code"] for row in rows] == ["http_500"] * 2
