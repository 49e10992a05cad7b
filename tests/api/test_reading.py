"""Lists and single things: filters, pages under concurrent writers, and what a bound key can see."""

import asyncio
from typing import Any

import httpx
import pytest

from tests.api.conftest import Served, problem
from tests.roles.dead_letters.scene import Scene
from tests.roles.observer.world import World
from tests.support.busy_writers import busy_writers
from tests.support.database import Database
from tidings.model.key import Scope
from tidings.roles.observer import pages


async def all_pages(client: httpx.AsyncClient, path: str, **params: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        said = (await client.get(path, params={**params, **({"cursor": cursor} if cursor else {})})).json()
        items += said["items"]
        cursor = said["next_cursor"]
        if cursor is None:
            return items


async def write_events(engine: Database, count: int) -> None:
    values = ", ".join("('a', '1')" for _ in range(count))
    await engine.sql(f"INSERT INTO events (event_type, payload) VALUES {values}")


@pytest.fixture
def viewer(served: Served) -> httpx.AsyncClient:
    return served.as_(Scope.VIEWER)


@pytest.fixture
async def world(engine: Database) -> World:
    world = World(engine)
    await world.set()
    await world.deliver(6)
    return world


async def test_an_event_is_shown_with_its_whole_trace(viewer: httpx.AsyncClient, world: World) -> None:
    newest = (await viewer.get("/v1/events", params={"limit": 1})).json()["items"][0]
    event = (await viewer.get(f"/v1/events/{newest['id']}")).json()
    assert {name: event[name] for name in newest} == newest
    assert event["payload"] == {}
    assert [one["status"] for one in event["route_attempts"]] == ["sent"]
    assert sorted(one["status"] for one in event["sagas"]) == ["Completed", "DeadLettered"]
    assert sorted(job["status"] for saga in event["sagas"] for job in saga["jobs"]) == ["Completed", "Failed"]


async def test_a_payload_is_shown_as_it_was_published(viewer: httpx.AsyncClient, served: Served) -> None:
    payload = '{ "n": 1e400, "n":  1.50 }'
    made = await served.as_(Scope.PUBLISHER).post(
        "/v1/events",
        content=f'{{"event_type": "a", "payload": {payload}}}',
        headers={"content-type": "application/json"},
    )
    answer = await viewer.get(f"/v1/events/{made.json()['id']}")
    assert f'"payload":{payload}' in answer.text


async def test_sagas_and_dead_letters_are_listed_and_shown(viewer: httpx.AsyncClient, world: World) -> None:
    sagas = await all_pages(viewer, "/v1/sagas", limit=5)
    assert len(sagas) == 12
    assert [one["id"] for one in sagas] == sorted((one["id"] for one in sagas), reverse=True)
    done = await all_pages(viewer, "/v1/sagas", limit=2, status="Completed")
    assert [one["id"] for one in done] == [one["id"] for one in sagas if one["status"] == "Completed"]
    of_one = await all_pages(viewer, "/v1/sagas", subscription_id=2, status="DeadLettered")
    letters = await all_pages(viewer, "/v1/dead-letters", limit=4)
    assert {one["saga_id"] for one in letters} == {one["id"] for one in of_one}
    one = (await viewer.get(f"/v1/dead-letters/{letters[0]['id']}")).json()
    assert one["payload_snapshot"] == {}
    saga = (await viewer.get(f"/v1/sagas/{letters[0]['saga_id']}")).json()
    assert saga["dead_letter_id"] == letters[0]["id"]
    assert [job["error_code"] for job in saga["jobs"]] == ["http_503"]
    assert await all_pages(viewer, "/v1/dead-letters", error_code="http_503", limit=1) == letters
    assert await all_pages(viewer, "/v1/dead-letters", error_code="timeout") == []
    assert await all_pages(viewer, "/v1/dead-letters", subscription_id=1) == []
    assert await all_pages(viewer, "/v1/dead-letters", event_type="order.paid", limit=2) == letters
    assert await all_pages(viewer, "/v1/dead-letters", event_type="other", subscription_id=2) == []
    assert await all_pages(viewer, "/v1/dead-letters", subscription_id=2, since="2020-01-01T00:00:00Z") == letters
    assert await all_pages(viewer, "/v1/dead-letters", until="2020-01-01T00:00:00Z") == []
    assert len(await all_pages(viewer, "/v1/sagas", event_id=saga["event_id"])) == 2


async def test_sagas_that_wait_come_by_how_long_they_are_due(viewer: httpx.AsyncClient, world: World) -> None:
    await world.publish(4)
    await world.route()
    ids = [one["id"] for one in await all_pages(viewer, "/v1/sagas", status="Pending")]
    assert len(ids) == 8
    due = [ids[n] for n in (3, 0, 7, 5, 1, 6, 2, 4)]
    for second, id in enumerate(due):
        await world.sql(
            f"UPDATE webhook_delivery_sagas SET next_attempt_at = '2026-01-01 00:00:0{second}' WHERE id = {id}"
        )
    waiting = await all_pages(viewer, "/v1/sagas", status="Pending", limit=3)
    assert [one["id"] for one in waiting] == due
    assert len(await all_pages(viewer, "/v1/sagas", status="Pending", subscription_id=1, limit=3)) == 4


async def test_sagas_are_found_by_what_people_know_of_them(
    viewer: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 5)
    await world.deliver(2)
    everything = await all_pages(viewer, "/v1/sagas")
    event = (await viewer.get(f"/v1/events/{everything[0]['event_id']}")).json()
    both = await all_pages(viewer, "/v1/sagas", correlation_id=event["correlation_id"], limit=1)
    assert [one["id"] for one in both] == [one["id"] for one in everything if one["event_id"] == event["id"]]
    assert await all_pages(viewer, "/v1/sagas", event_type=event["event_type"], limit=5) == everything
    assert await all_pages(viewer, "/v1/sagas", event_type="other") == []
    latest = everything[:4]
    since = await all_pages(viewer, "/v1/sagas", since=latest[-1]["created_at"], subscription_id=1, limit=1)
    assert since == [one for one in latest if one["subscription_id"] == 1]
    assert await all_pages(viewer, "/v1/sagas", until="2001-01-01T00:00:00Z", limit=3) == []
    assert (await viewer.get("/v1/sagas?since=2999-01-01T00:00:00Z&limit=3")).json()["next_cursor"] is None
    problem(await viewer.get("/v1/sagas?event_id=1&status=Pending"), 422, "invalid")
    problem(await viewer.get("/v1/sagas?correlation_id=a&event_type=b"), 422, "invalid")


async def test_subscriptions_are_found_by_type_and_state(
    viewer: httpx.AsyncClient, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 3)
    for number in range(8):
        await scene.subscription(
            event_type=f"'t{number % 2}'", active=number % 3 != 0, paused=number == 5, verified=number != 6
        )
    everything = await all_pages(viewer, "/v1/subscriptions", limit=3)
    assert len(everything) == 8
    for params in ({"event_type": "t1"}, {"active": False}, {"paused": True}, {"verified": True, "active": True}):
        wanted = [one for one in everything if all(one[name] == value for name, value in params.items())]
        assert await all_pages(viewer, "/v1/subscriptions", limit=2, **params) == wanted, params
        assert wanted


async def test_tasks_are_found_by_type_status_and_key(viewer: httpx.AsyncClient, engine: Database) -> None:
    values = ", ".join(f"('T{n % 2}', 'k{n}', {n % 5}, '{{}}')" for n in range(20))
    await engine.sql(f"INSERT INTO sys_pending_tasks (biz_type, biz_key, status, payload) VALUES {values}")
    everything = await all_pages(viewer, "/v1/tasks", limit=6)
    assert len(everything) == 20
    for params in ({"status": 4}, {"status": 0}, {"status": 3, "biz_type": "T1"}, {"biz_type": "T0"}):
        found = await all_pages(viewer, "/v1/tasks", limit=3, **params)
        wanted = [one for one in everything if all(one[name] == value for name, value in params.items())]
        assert sorted(one["id"] for one in found) == sorted(one["id"] for one in wanted), params
    assert [one["biz_key"] for one in await all_pages(viewer, "/v1/tasks", biz_type="T1", biz_key="k7")] == ["k7"]
    problem(await viewer.get("/v1/tasks?biz_key=k7"), 422, "invalid")
    problem(await viewer.get("/v1/tasks?since=2026-01-01T00:00:00Z"), 422, "invalid")
    assert await all_pages(viewer, "/v1/tasks", archived=True, since="2026-01-01T00:00:00Z") == []


async def test_events_are_found_by_type_correlation_id_external_id_domain_and_time(
    viewer: httpx.AsyncClient, engine: Database
) -> None:
    values = ", ".join(
        f"('{'shop' if n % 3 == 0 else 'default'}', 't{n % 2}', 'c{n % 5}', 'x{n}', '{{}}', '2026-01-01 00:00:{n:02}')"
        for n in range(30)
    )
    columns = "event_domain, event_type, correlation_id, external_id, payload, created_at"
    await engine.sql(f"INSERT INTO events ({columns}) VALUES {values}")
    everything = await all_pages(viewer, "/v1/events", limit=7)
    assert len(everything) == 30

    async def found(**params: Any) -> list[str]:
        return [one["external_id"] for one in await all_pages(viewer, "/v1/events", limit=4, **params)]

    def wanted(**fields: str) -> list[str]:
        return [e["external_id"] for e in everything if all(e[name] == value for name, value in fields.items())]

    assert await found(event_type="t1") == wanted(event_type="t1")
    assert await found(correlation_id="c3") == wanted(correlation_id="c3")
    assert await found(event_domain="shop") == wanted(event_domain="shop")
    assert await found(event_domain="shop", event_type="t0") == wanted(event_domain="shop", event_type="t0")
    assert await found(external_id="x1") == ["x1"]
    assert await found(external_id="x0") == []
    assert await found(external_id="x0", event_domain="shop") == ["x0"]
    moment = "2026-01-01T00:00:11Z"
    assert await found(since=moment) == [f"x{n}" for n in range(29, 10, -1)]
    assert await found(until="2001-01-01T00:00:00Z") == []
    assert await found(event_type="t1", since=moment) == [f"x{n}" for n in range(29, 10, -2)]
    assert await found(event_type="t1", event_domain="shop", since=moment) == ["x27", "x21", "x15"]
    assert await found(event_domain="shop", until=moment) == ["x9", "x6", "x3", "x0"]
    assert await found(until=moment) == [f"x{n}" for n in range(11, -1, -1)]
    problem(await viewer.get("/v1/events?event_type=a&correlation_id=b"), 422, "invalid")
    problem(await viewer.get("/v1/events?since=0001-01-01T00:00:00%2B05:00"), 422, "invalid")


@pytest.mark.parametrize("window", [3, 2000])
async def test_pages_that_have_to_look_for_what_fits_lose_nothing(
    viewer: httpx.AsyncClient, engine: Database, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    monkeypatch.setattr(pages, "WINDOW", window)
    values = ", ".join(f"('{'rare' if n in (2, 3, 29) else 'default'}', 'a', '{{}}')" for n in range(40))
    await engine.sql(f"INSERT INTO events (event_domain, event_type, payload) VALUES {values}")
    everything = await all_pages(viewer, "/v1/events", limit=7)
    rare = await all_pages(viewer, "/v1/events", limit=2, event_domain="rare")
    assert rare == [one for one in everything if one["event_domain"] == "rare"]
    assert rare == await all_pages(viewer, "/v1/events", limit=2, event_domain="rare", event_type="a")


async def test_a_cursor_is_good_for_its_own_list_and_filters_only(
    viewer: httpx.AsyncClient, served: Served, engine: Database
) -> None:
    await write_events(engine, 5)
    cursor = (await viewer.get("/v1/events?limit=2&event_type=a")).json()["next_cursor"]
    assert len((await viewer.get(f"/v1/events?limit=2&event_type=a&cursor={cursor}")).json()["items"]) == 2
    for wrong in (
        f"/v1/events?cursor={cursor}",
        f"/v1/events?event_type=b&cursor={cursor}",
        f"/v1/sagas?cursor={cursor}",
        f"/v1/events?event_type=a&cursor={cursor[:-2]}",
        f"/v1/events?event_type=a&cursor={cursor[:20]}A{cursor[21:]}x",
        "/v1/events?cursor=W10",
        "/v1/events?cursor=%00",
    ):
        problem(await viewer.get(wrong), 400, "bad_cursor")
    bound = served.client(await served.key("viewer", domain="default"))
    problem(await bound.get(f"/v1/events?event_type=a&cursor={cursor}"), 400, "bad_cursor")


@pytest.mark.slow
@pytest.mark.parametrize(
    "params", [{}, {"event_type": "a"}, {"event_domain": "default"}, {"since": "2001-01-01T00:00:00Z"}]
)
async def test_each_row_of_before_the_first_page_comes_exactly_once_while_others_write(
    viewer: httpx.AsyncClient, engine: Database, params: dict[str, str]
) -> None:
    """Fifty pages, with writers whose transactions commit out of the order of their ids."""
    await write_events(engine, 200)
    before = {row["id"] for row in await engine.sql("SELECT id FROM events", "observer")}
    async with busy_writers(engine, "a"):
        ids = [one["id"] for one in await all_pages(viewer, "/v1/events", limit=4, **params)]
    assert len(ids) == len(set(ids))
    assert before <= set(ids)


@pytest.mark.slow
async def test_fifty_readers_at_once_each_see_every_row_of_before_exactly_once(
    viewer: httpx.AsyncClient, scene: Scene
) -> None:
    """All lists that grow: events, deliveries and dead letters, while writers add to them."""
    subscription = await scene.subscription()
    await scene.letters(subscription, 60)
    tables = {"/v1/events": "events", "/v1/sagas": "webhook_delivery_sagas", "/v1/dead-letters": "dead_letters"}
    before = {path: {row["id"] for row in await scene.all(table)} for path, table in tables.items()}
    reading = True

    async def write() -> None:
        while reading:
            await scene.letters(subscription, 2)

    async def read(number: int) -> None:
        path = [*tables][number % len(tables)]
        ids = [one["id"] for one in await all_pages(viewer, path, limit=7 + number % 5)]
        assert len(ids) == len(set(ids)), path
        assert before[path] <= set(ids), path

    writing = asyncio.create_task(write())
    try:
        await asyncio.gather(*(read(number) for number in range(50)))
    finally:
        reading = False
        await writing


async def test_a_bound_key_sees_its_own_domain_and_of_others_not_even_that_they_are_there(
    served: Served, scene: Scene
) -> None:
    subscription = await scene.subscription(event_domain="'bank'")
    (letter,) = await scene.letters(subscription)
    (saga,) = [row["id"] for row in await scene.all("webhook_delivery_sagas")]
    (event,) = [row["id"] for row in await scene.all("events")]
    shop = served.client(await served.key("viewer", domain="shop"))
    default = served.client(await served.key("viewer", domain="default"))
    for client, sees in ((shop, False), (default, True)):
        for path in ("/v1/events", "/v1/sagas", "/v1/dead-letters", f"/v1/sagas?event_id={event}"):
            assert bool((await client.get(path)).json()["items"]) == sees, path
        for path in (
            f"/v1/events/{event}",
            f"/v1/sagas/{saga}",
            f"/v1/dead-letters/{letter}",
            f"/v1/why/event/{event}",
            f"/v1/why/saga/{saga}",
        ):
            answer = await client.get(path)
            assert (answer.status_code == 200) == sees, path
            if not sees:
                there = problem(answer, 404, "not_found")
                absent = problem(await client.get(path.rpartition("/")[0] + "/999"), 404, "not_found")
                assert there["detail"] == absent["detail"].replace("999", path.rpartition("/")[2])
        # The subscription is of a third domain.
        problem(await client.get(f"/v1/subscriptions/{subscription}"), 404, "not_found")
        assert (await client.get("/v1/subscriptions")).json()["items"] == []
    bank = served.client(await served.key("viewer", domain="bank"))
    assert (await bank.get(f"/v1/subscriptions/{subscription}")).status_code == 200
    assert len((await bank.get("/v1/subscriptions")).json()["items"]) == 1


async def test_why_and_stats_answer_as_the_command_line_does(viewer: httpx.AsyncClient, world: World) -> None:
    said = (await viewer.get("/v1/why/event/1")).json()
    assert said["subject"] == "event:1"
    assert len(said["parts"]) == 2
    problem(await viewer.get("/v1/why/saga/999"), 404, "not_found")
    problem(await viewer.get("/v1/why/job/1"), 422, "invalid")
    stats = (await viewer.get("/v1/stats")).json()
    assert {"queues", "routers", "processes", "counted_to"} == set(stats)
    assert stats["routers"][0]["router"] == "default"
