"""What the observer tells about routing: pages along an index, no payload in lists, the same on both engines."""

import datetime
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from tests.roles.routes.scene import ACTOR, make_hole, make_router, publish, stored, webhook
from tests.support.database import Database
from tests.support.engine_words import Words
from tests.support.rows import insert
from tidings.db.operations import Operations
from tidings.db.statements import Statement
from tidings.db.transaction import Transaction
from tidings.errors import NotFound
from tidings.roles.observer.filters import EventFilter
from tidings.roles.observer.listing import Page
from tidings.roles.observer.routing import RoutingObserver
from tidings.roles.observer.searching import EventSearcher
from tidings.roles.routes import gates, routes

T = TypeVar("T")
Observer = TypeVar("Observer", bound=Operations)


async def look(engine: Database, work: Callable[[RoutingObserver], Awaitable[T]]) -> T:
    return await RoutingObserver.step(await engine.open("observer"), work)


async def search(engine: Database, work: Callable[[EventSearcher], Awaitable[Page]]) -> Page:
    return await EventSearcher.step(await engine.open("observer"), work)


def ids(page: Page) -> list[int]:
    return [item["id"] for item in page.items]


async def insert_event(engine: Database, created_at: str = "2026-01-01 00:00:00", **values: Any) -> None:
    usual = {"event_type": "order.paid", "payload": '{"a": 1}'}
    await insert(engine, "events", created_at=created_at, **{**usual, **values})


async def test_routes_come_in_pages_in_the_order_in_which_they_were_made(engine: Database) -> None:
    admin = await engine.open("route_admin")
    made = [(await routes.add(admin, webhook(f"t{n}", dry_run=n == 1), ACTOR)).id for n in range(3)]
    first = await look(engine, lambda observer: observer.routes(2, None))
    assert ids(first) == made[:2]
    assert [route["dry_run"] for route in first.items] == [False, True]
    rest = await look(engine, lambda observer: observer.routes(2, first.next))
    assert (ids(rest), rest.next) == (made[2:], None)


async def test_a_missing_gate_is_shown_as_closed(engine: Database) -> None:
    shown = await look(engine, RoutingObserver.gates)
    assert [(gate["name"], gate["is_open"]) for gate in shown] == [("routing", False), ("router:default", False)]
    await make_router(engine, "shop", "shop")
    await gates.open(await engine.open("route_admin"), "routing", "go", ACTOR)
    shown = await look(engine, RoutingObserver.gates)
    assert [(gate["name"], gate["is_open"], gate["reason"]) for gate in shown] == [
        ("routing", True, "go"),
        ("router:shop", False, ""),
    ]


async def test_a_router_is_shown_with_its_lag_and_its_holes(engine: Database) -> None:
    await publish(engine, 5)
    await make_router(engine, position=2)
    await make_router(engine, "shop", "shop", position=5)
    await make_hole(engine, 1, 1)
    await make_hole(engine, 10, 14)
    default, shop = await look(engine, lambda observer: observer.routers(10))
    assert (default["worker_name"], default["position"], default["lag"]) == ("default", 2, 3)
    assert (default["hole_ranges"], default["hole_ids"]) == (2, 6)
    assert default["oldest_hole"] == datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC)
    assert default["oldest_hole_seconds"] > 0
    assert default["knows_its_last_event"] is True
    assert (shop["lag"], shop["hole_ranges"], shop["hole_ids"], shop["oldest_hole_seconds"]) == (0, 0, 0, None)
    one = await look(engine, lambda observer: observer.router("default"))
    assert [(hole["lo"], hole["hi"]) for hole in one["holes"]] == [(1, 1), (10, 14)]
    assert [router["worker_name"] for router in await look(engine, lambda o: o.routers(10, "default"))] == ["shop"]


async def test_a_router_whose_last_event_is_another_one_is_known(engine: Database) -> None:
    await publish(engine, 2)
    await make_router(engine, position=2)
    await engine.sql("UPDATE route_worker_cursors SET last_event_correlation_id = 'other'", role="event_router")
    (router,) = await look(engine, lambda observer: observer.routers(10))
    assert router["knows_its_last_event"] is False


async def test_events_come_newest_first_in_pages_without_payload(engine: Database) -> None:
    log = await publish(engine, 3)
    first = await search(engine, lambda searcher: searcher.page(EventFilter(), 2, None))
    assert ids(first) == [log[2]["id"], log[1]["id"]]
    assert all("payload" not in event for event in first.items)
    assert ids(await search(engine, lambda searcher: searcher.page(EventFilter(), 2, first.next))) == [log[0]["id"]]


async def test_events_of_one_type_come_newest_first_in_pages(engine: Database) -> None:
    for event_type in ("a", "b", "a", "a"):
        await insert_event(engine, event_type=event_type)
    of_type = EventFilter(event_type="a")
    first = await search(engine, lambda searcher: searcher.page(of_type, 2, None))
    assert ids(first) == [4, 3]
    assert ids(await search(engine, lambda searcher: searcher.page(of_type, 2, first.next))) == [1]


async def test_events_of_a_span_of_time_come_in_pages_also_where_many_are_of_the_same_moment(engine: Database) -> None:
    moments = ["00:00:01", "00:00:03", "00:00:02", "00:00:02", "00:00:02", "00:00:04"]
    for moment in moments:
        await insert_event(engine, f"2026-01-01 {moment}")
    since = datetime.datetime(2026, 1, 1, 0, 0, 2, tzinfo=datetime.UTC)
    until = datetime.datetime(2026, 1, 1, 0, 0, 3, tzinfo=datetime.UTC)
    span = EventFilter(since=since, until=until)

    async def walk(searcher: EventSearcher) -> Page:
        seen: list[Any] = []
        page = await searcher.page(span, 2, None)
        while page.items:
            seen += page.items
            page = await searcher.page(span, 2, await searcher.place_after(seen[-1]["id"], span))
        return Page(seen, None)

    assert ids(await search(engine, walk)) == [2, 5, 4, 3]
    everything = EventFilter(until=datetime.datetime(2027, 1, 1, tzinfo=datetime.UTC))
    assert ids(await search(engine, lambda searcher: searcher.page(everything, 9, None))) == [6, 2, 5, 4, 3, 1]


async def test_an_event_is_found_by_its_external_id_in_its_domain(engine: Database) -> None:
    await insert_event(engine, external_id="order-1")
    await insert_event(engine, external_id="order-1", event_domain="shop")
    assert ids(await search(engine, lambda o: o.event_with_external_id("shop", "order-1"))) == [2]
    assert ids(await search(engine, lambda o: o.event_with_external_id("default", "ORDER-1"))) == []


async def test_one_event_is_shown_whole_with_what_was_decided(engine: Database) -> None:
    await insert_event(engine)
    for number in (1, 2):
        await engine.sql(
            "INSERT INTO route_attempts (event_id, worker_name, status, attempt_no, idempotency_key)"
            f" VALUES (1, 'default', 'skipped', {number}, 'wrk:default:-:1')",
            role="event_router",
        )
    event = await look(engine, lambda observer: observer.event(1))
    assert event["payload"] == '{"a": 1}'
    assert [(attempt["attempt_no"], attempt["status"]) for attempt in event["route_attempts"]] == [
        (1, "skipped"),
        (2, "skipped"),
    ]
    with pytest.raises(NotFound, match="no event 2"):
        await look(engine, lambda observer: observer.event(2))


async def bury(engine: Database, number: int, resolved: bool = False) -> None:
    await engine.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error, resolved_at)"
        f" VALUES ({number}, 'default', 'k{number}', '{{\"id\": {number}}}', '{'too much ' * 100}',"
        f" {'CURRENT_TIMESTAMP' if resolved else 'NULL'})",
        role="event_router",
    )


async def test_routing_dead_letters_are_listed_until_they_are_resolved(engine: Database) -> None:
    for number, resolved in ((1, False), (2, True), (3, False), (4, False)):
        await bury(engine, number, resolved)
    first = await search(engine, lambda observer: observer.route_dead_letters(False, 2, None))
    assert ids(first) == [4, 3]
    assert all(len(letter["error"]) == 200 and "event_snapshot" not in letter for letter in first.items)
    assert ids(await search(engine, lambda observer: observer.route_dead_letters(False, 2, first.next))) == [1]
    assert ids(await search(engine, lambda observer: observer.route_dead_letters(True, 9, None))) == [4, 3, 2, 1]
    letter = await look(engine, lambda observer: observer.route_dead_letter(3))
    assert json.loads(letter["event_snapshot"]) == {"id": 3}
    assert len(letter["error"]) == 900
    count, newest = await look(engine, lambda observer: observer.unresolved_route_dead_letters(3))
    assert (count, newest and newest["id"]) == (2, 4)
    with pytest.raises(NotFound, match="no routing dead letter 9"):
        await look(engine, lambda observer: observer.route_dead_letter(9))


@pytest.mark.one_engine("postgresql", reason="MariaDB does not show who has not committed yet")
async def test_a_transaction_that_may_still_bring_events_is_seen(engine: Database) -> None:
    assert await look(engine, RoutingObserver.open_writers) == []
    producer = await engine.open("event_ingest_writer")
    async with producer.transaction() as transaction:
        await transaction.command("INSERT INTO events (event_type, payload) VALUES ('t', '1')")
        ((pid, _),) = await look(engine, RoutingObserver.open_writers)
        assert pid
    assert len(await stored(engine, "events")) == 1


READ_ROWS = {
    "postgresql": "SELECT coalesce(seq_scan, 0) AS scans FROM pg_stat_xact_user_tables"
    " WHERE relid = 'events'::regclass",
    "mysql": "SHOW SESSION STATUS LIKE 'Handler_read_rnd_next'",
}


@pytest.mark.slow
async def test_no_list_of_events_walks_through_the_table(engine: Database) -> None:
    words = Words(engine)
    await engine.sql(
        "INSERT INTO events (event_type, payload, created_at)"
        f" SELECT CONCAT('t', seq % 20), '1', {words.later(words.moment('2026-01-01'), 'seq')}"
        f" FROM {words.numbers(20_000)}"
    )
    moment = datetime.datetime(2026, 1, 1, 3, tzinfo=datetime.UTC)
    since = EventFilter(since=moment)

    async def behind(searcher: EventSearcher) -> Page:
        return await searcher.page(since, 50, await searcher.place_after(15_000, since))

    lists: dict[str, Callable[[EventSearcher], Awaitable[object]]] = {
        "all": lambda o: o.page(EventFilter(), 50, [10_000]),
        "one type": lambda o: o.page(EventFilter(event_type="t7"), 50, [10_000]),
        "a missing type": lambda o: o.page(EventFilter(event_type="never"), 50, None),
        "time": lambda o: o.page(since, 50, None),
        "a page of time": behind,
        "external id": lambda o: o.event_with_external_id("default", "x"),
    }
    await make_router(engine, position=10)
    for name, work in lists.items():
        assert await scanned(engine, EventSearcher, work) < 100, name
    assert await scanned(engine, RoutingObserver, lambda o: o.routers(10)) < 100


async def scanned(engine: Database, kind: type[Observer], work: Callable[[Observer], Awaitable[object]]) -> int:
    """How often the table was read from its beginning, or how many rows in storage order."""
    login = await engine.open("observer", size=1)
    async with login.transaction() as transaction:
        before = await count(transaction, engine.family)
        await work(kind(transaction, login.dialect))
        return await count(transaction, engine.family) - before


async def count(transaction: Transaction, family: str) -> int:
    (row,) = await transaction.rows(Statement("test.scans", READ_ROWS[family], ()))
    scans = int([*row.values()][-1])
    return scans * 1000 if family == "postgresql" else scans
