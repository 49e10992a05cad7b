"""`tidings.publish` in the caller's own transaction, the same through every driver."""

from typing import Any

import pytest

import tidings
from tests.client.callers import ENGINE_OF, Caller
from tests.support.database import Database

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("driver", ENGINE_OF)]

ODD = '  { "z":1,\t"a" : "100% it\'s \\\\ 😀 \\u00e9 %s $1 :x {0}",\r\n"a":2.50 } '


async def stored(engine: Database) -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql("SELECT * FROM events ORDER BY id", "observer")]


async def test_an_event_exists_when_its_transaction_commits(caller: Caller, engine: Database) -> None:
    published = await caller.do(
        lambda c: tidings.publish(
            c,
            "order.paid",
            ODD,
            external_id="it's 100% \\ ü😀",
            event_domain="shop",
            event_stream="o-1",
            correlation_id="c-1",
        )
    )
    assert published == tidings.Published(id=published.id)
    assert await stored(engine) == []
    await caller.commit()
    (event,) = await stored(engine)
    assert event.pop("created_at") is not None
    assert event == {
        "id": published.id,
        "event_domain": "shop",
        "event_type": "order.paid",
        "event_stream": "o-1",
        "external_id": "it's 100% \\ ü😀",
        "payload": ODD,
        "correlation_id": "c-1",
    }


async def test_an_event_is_gone_when_its_transaction_rolls_back(caller: Caller, engine: Database) -> None:
    await caller.do(lambda c: tidings.publish(c, "order.paid", {"n": 1}))
    await caller.rollback()
    await caller.do(lambda c: tidings.publish(c, "order.paid", {"n": 2}, external_id="2"))
    await caller.commit()
    assert [event["payload"] for event in await stored(engine)] == ['{"n":2}']


async def test_many_are_published_at_once_each_with_its_own_id(caller: Caller, engine: Database) -> None:
    given: list[Any] = [
        {"event_type": "a", "payload": n, **({"external_id": f"x{n * 7 % 40}"} if n % 2 else {})} for n in range(40)
    ]
    given.append(tidings.Event("a", [1, None, "é"], external_id="x7"))
    published = await caller.do(lambda c: tidings.publish_many(c, given))
    await caller.commit()
    payloads = {event["id"]: event["payload"] for event in await stored(engine)}
    assert len(payloads) == 40
    assert [payloads[one.id] for one in published[:40]] == [str(n) for n in range(40)]
    assert [one.id for one in published[:40]] == sorted(payloads)
    assert published[40] == tidings.Published(published[1].id, duplicate=True, payload_differs=True)


async def test_the_same_external_id_again_is_the_first_event(caller: Caller, engine: Database) -> None:
    async def publish(payload: Any, **more: Any) -> Any:
        return await caller.do(lambda c: tidings.publish(c, "a", payload, external_id="ü😀", **more))

    first = await publish('{"n": 1}')
    assert await publish('{"n": 1}') == tidings.Published(first.id, duplicate=True)
    await caller.commit()
    assert await publish('{"n":1}') == tidings.Published(first.id, duplicate=True, payload_differs=True)
    assert not (await publish('{"n":1}', event_domain="other")).duplicate
    await caller.commit()
    assert len(await stored(engine)) == 2


async def test_a_refused_event_leaves_the_transaction_as_it_was(caller: Caller, engine: Database) -> None:
    await caller.do(lambda c: tidings.publish(c, "kept", {}))
    with pytest.raises(tidings.EventRefused):
        await caller.do(lambda c: tidings.publish(c, "not kept", {}))
    with pytest.raises(tidings.EventRefused) as refused:
        await caller.do(
            lambda c: tidings.publish_many(c, [tidings.Event("a", {}), {"event_type": "b", "payload": "{"}])
        )
    assert refused.value.field == "events[1].payload"
    await caller.commit()
    assert [event["event_type"] for event in await stored(engine)] == ["kept"]
    assert await caller.do(lambda c: tidings.publish_many(c, [])) == []
