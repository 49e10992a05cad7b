"""Group commit: many callers, few transactions; everybody gets an answer of their own, and only after COMMIT.

That the writer can touch nothing but events is tried in tests/db/test_rights_matrix.py.
"""

import asyncio
import random

import pytest

from tests.roles.ingest.conftest import WRITER
from tests.roles.ingest.events import bad_event, event, stored
from tests.support.database import Database
from tests.support.fault_proxy import FREEZE, Fault, FaultProxy
from tests.support.waiting import eventually
from tidings.db.engine import Engine
from tidings.errors import EventRefused, StatementFailed, TransientFailure
from tidings.model.event import NewEvent, Published
from tidings.roles.ingest.service import BatchLimits, Ingest

pytestmark = pytest.mark.slow

REFUSALS = (EventRefused, StatementFailed)
COMMIT = f"{WRITER}.commit"


async def test_one_event_is_stored_as_it_was_given(ingest: Ingest, engine: Database) -> None:
    given = event(' {"a" :1}', "x", event_domain="shop", event_stream="s", event_type="order.paid")
    (published,) = await ingest.publish([given])
    assert published == Published(published.id)
    row = (await stored(engine))[published.id]
    row.pop("created_at")
    assert row == {"id": published.id, **given.__dict__}


async def test_nothing_to_publish_is_no_transaction(through_proxy: Engine, proxy: FaultProxy) -> None:
    ingest = Ingest(through_proxy)
    proxy.clear()
    assert await ingest.publish([]) == []
    await ingest.close()
    assert proxy.seen == []


async def test_calls_that_come_together_share_a_commit(through_proxy: Engine, proxy: FaultProxy) -> None:
    ingest = Ingest(through_proxy)
    published = await asyncio.gather(*(ingest.publish([event(str(n))]) for n in range(100)))
    assert len({one.id for (one,) in published}) == 100
    assert proxy.seen.count(COMMIT) == 1
    await ingest.close()


async def test_who_comes_while_others_commit_gathers_for_the_next_commit(
    through_proxy: Engine, proxy: FaultProxy, engine: Database
) -> None:
    ingest = Ingest(through_proxy, BatchLimits(writers=1))
    proxy.arm(Fault(COMMIT, FREEZE, "after"))
    first = asyncio.create_task(ingest.publish([event("0")]))
    await proxy.until_fired()
    others = [asyncio.create_task(ingest.publish([event(str(n))])) for n in range(1, 30)]
    # It is stored, and yet nobody was told so.
    assert len(await stored(engine)) == 1
    assert not first.done()
    proxy.thaw()
    await asyncio.gather(first, *others)
    assert proxy.seen.count(COMMIT) == 2
    await ingest.close()


async def test_a_caller_that_publishes_again_as_soon_as_it_is_answered_is_never_forgotten(engine: Database) -> None:
    """The writer that answered the caller is just about to end."""
    ingest = Ingest(await engine.open(WRITER), BatchLimits(writers=1))
    async with asyncio.timeout(10):
        for _ in range(5):
            await ingest.publish([event()])
    await ingest.close()


async def test_a_batch_is_bounded_by_events_and_by_bytes(through_proxy: Engine, proxy: FaultProxy) -> None:
    small = Ingest(through_proxy, BatchLimits(events=10, payload_bytes=100, writers=1))
    await asyncio.gather(*(small.publish([event()]) for _ in range(40)))
    assert proxy.seen.count(COMMIT) == 4
    proxy.clear()
    await asyncio.gather(*(small.publish([event(f'"{"x" * 60}"')]) for _ in range(10)))
    assert proxy.seen.count(COMMIT) == 5
    proxy.clear()
    assert len(await small.publish([event() for _ in range(1200)])) == 1200
    assert proxy.seen.count(COMMIT) == 1
    await small.close()


async def test_ids_ascend_in_the_order_of_a_request(ingest: Ingest, engine: Database) -> None:
    published = await ingest.publish([event(str(n)) for n in range(1100)])
    rows = await stored(engine)
    assert [one.id for one in published] == sorted(rows)
    assert [rows[one.id]["payload"] for one in published] == [str(n) for n in range(1100)]


async def test_the_same_object_twice_is_two_events(ingest: Ingest, engine: Database) -> None:
    alike = event()
    first, second = await ingest.publish([alike, alike])
    assert {first.id, second.id} == set(await stored(engine))
    assert first.id != second.id


async def test_the_first_of_a_call_wins_and_the_second_is_told(ingest: Ingest, engine: Database) -> None:
    published = await ingest.publish(
        [event("1", "b"), event("2", "a"), event("1", "b"), event("3", "b"), event("3", "b", event_domain="other")]
    )
    first = published[0].id
    assert published[2:4] == [Published(first, True), Published(first, True, payload_differs=True)]
    assert [one.duplicate for one in published] == [False, False, True, True, False]
    assert [row["payload"] for row in (await stored(engine)).values()] == ["2", "1", "3"]


async def test_fifty_at_once_with_the_same_external_id_make_one_event(ingest: Ingest, engine: Database) -> None:
    rush = await asyncio.gather(*(ingest.publish([event("{}", "once")]) for _ in range(50)))
    assert len({one.id for (one,) in rush}) == len(await stored(engine)) == 1
    assert sum(one.duplicate for (one,) in rush) == 49
    assert not any(one.payload_differs for (one,) in rush)


async def test_external_ids_are_told_apart_byte_by_byte(ingest: Ingest, engine: Database) -> None:
    """`abc`, `ABC` and `abc ` are three."""
    ids = ["abc", "ABC", "abc ", "äbc", "a\u0308bc", "ß", "ss"]
    first = await ingest.publish([event("{}", external_id) for external_id in ids])
    again = [(await ingest.publish([event("{}", external_id)]))[0] for external_id in ids]
    assert len(await stored(engine)) == len(ids)
    assert again == [Published(one.id, duplicate=True) for one in first]


async def test_known_duplicates_draw_no_ids(ingest: Ingest) -> None:
    (first,) = await ingest.publish([event("{}", "x")])
    for _ in range(10):
        await ingest.publish([event("{}", "x"), event("{}", "x")])
    (after,) = await ingest.publish([event()])
    assert after.id == first.id + 1


@pytest.mark.parametrize("count", [1, 2, 7, 64])
async def test_a_request_that_the_database_refuses_fails_alone(ingest: Ingest, engine: Database, count: int) -> None:
    requests = [[event(str(n)), event(str(n), f"x{n}")] for n in range(count)]
    requests.insert(count // 2, [event("before"), bad_event(), event('"after"')])
    answers = await asyncio.gather(*map(ingest.publish, requests), return_exceptions=True)
    assert isinstance(answers.pop(count // 2), REFUSALS)
    rows = await stored(engine)
    assert len(rows) == 2 * count
    for number, answer in enumerate(answers):
        assert isinstance(answer, list)
        assert [rows[one.id]["payload"] for one in answer] == [str(number)] * 2


async def test_when_the_first_of_two_is_refused_the_second_is_no_duplicate(ingest: Ingest, engine: Database) -> None:
    answers = await asyncio.gather(
        ingest.publish([bad_event("1", "x")]), ingest.publish([event("2", "x")]), return_exceptions=True
    )
    assert isinstance(answers[0], REFUSALS)
    (row,) = (await stored(engine)).values()
    assert answers[1] == [Published(row["id"])]
    assert row["payload"] == "2"


async def test_sixty_four_clients_each_get_their_own_answer(engine: Database) -> None:
    """Some repeat themselves, some repeat each other, some send what is refused; two processes take them in."""
    chance = random.Random(8)
    ingests = [Ingest(await engine.open(WRITER), BatchLimits(events=40)) for _ in range(2)]
    answered: list[tuple[NewEvent, Published]] = []
    refused: list[NewEvent] = []

    async def client(number: int) -> None:
        for turn in range(12):
            payload, key = f'"{number}.{turn}"', chance.choice([None, f"own{number}.{turn // 2}", f"all{turn}"])
            request = [event(payload, key) for _ in range(chance.choice([1, 1, 3]))]
            if chance.random() < 0.1:
                request.insert(0, bad_event(payload, f"bad{number}.{turn}"))
            try:
                answer = await chance.choice(ingests).publish(request)
            except REFUSALS:
                refused.extend(request)
            else:
                answered.extend(zip(request, answer, strict=True))

    await asyncio.gather(*map(client, range(64)))
    for ingest in ingests:
        await ingest.close()
    rows = await stored(engine)
    assert len([one for one in refused if one.event_type == "not visible"]) > 20
    assert {given.event_type for given, _ in answered} == {"a"}
    assert len(answered) > 10 * len(rows) / 9
    for given, published in answered:
        row = rows[published.id]
        if not published.duplicate:
            assert given.__dict__.items() <= row.items()
        assert (row["external_id"], published.payload_differs) == (given.external_id, row["payload"] != given.payload)
    assert sorted(one.id for _, one in answered if not one.duplicate) == sorted(rows)


async def test_a_caller_that_gives_up_takes_nobody_with_it(ingest: Ingest, engine: Database) -> None:
    impatient = asyncio.create_task(ingest.publish([event("1")]))
    patient = asyncio.create_task(ingest.publish([event("2")]))
    await asyncio.sleep(0)
    impatient.cancel()
    (published,) = await patient
    assert (await stored(engine))[published.id]["payload"] == "2"
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_closing_waits_for_everybody_and_lets_nobody_in(engine: Database) -> None:
    ingest = Ingest(await engine.open(WRITER), BatchLimits(events=5))
    waiting = [asyncio.create_task(ingest.publish([event()])) for _ in range(50)]
    await asyncio.sleep(0)
    await ingest.close()
    assert all(task.done() for task in waiting)
    assert len(await stored(engine)) == 50
    with pytest.raises(TransientFailure, match="takes no more events"):
        await ingest.publish([event()])


async def test_an_ingest_without_work_keeps_no_task(ingest: Ingest) -> None:
    await ingest.publish([event()])
    await eventually(lambda: len(asyncio.all_tasks()) == 1, what="the writer to end")
