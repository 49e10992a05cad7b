"""The commands for routers lock the cursor, move it exactly, and are audited; what is refused leaves no trace."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.roles.routes.scene import (
    ACTOR,
    audited,
    cursor,
    holes,
    make_hole,
    make_router,
    publish,
    rolled_back,
    stored,
)
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tidings.db.engine import Engine
from tidings.errors import InputRefused, NotFound, RouterHeld
from tidings.roles.routes import routers

pytestmark = pytest.mark.slow

SEEN = "678901"


def identity(row: dict[str, Any]) -> tuple[Any, Any, Any]:
    return row["last_event_id"], row["last_event_correlation_id"], row["last_event_created_at"]


def of_event(row: dict[str, Any]) -> tuple[Any, Any, Any]:
    return row["id"], row["correlation_id"], row["created_at"]


async def everything(engine: Database) -> list[Any]:
    return [await stored(engine, table) for table in ("route_worker_cursors", "route_holes", "audit_log")]


# --- add -------------------------------------------------------------------------------------------------------------


async def test_the_first_router_begins_at_the_beginning(engine: Database) -> None:
    made = await routers.add(await engine.open("route_admin"), "shop-1", "shop", ACTOR)
    row = await cursor(engine, "shop-1")
    assert (row["event_domain"], row["position"], identity(row)) == ("shop", 0, (None, None, None))
    assert made.place.position == 0
    (entry,) = await audited(engine)
    assert entry[:3] == (ACTOR, "router.added", "router:shop-1")
    assert entry[3] == {"event_domain": "shop", "position": 0, "holes": 0, "taken_over_from": None}


async def test_a_new_router_takes_its_domain_over_at_the_same_place_with_the_same_holes(engine: Database) -> None:
    log = await publish(engine, 3)
    await make_router(engine, position=log[1]["id"])
    await make_hole(engine, 1, 1)
    await make_hole(engine, 5, 9)
    await routers.add(await engine.open("route_admin"), "shop", "shop", ACTOR)
    row, source = await cursor(engine, "shop"), await cursor(engine)
    assert row["position"] == source["position"] == log[1]["id"]
    assert identity(row) == identity(source) == of_event(log[1])
    assert await holes(engine, "shop") == await holes(engine) == [(1, 1, SEEN), (5, 9, SEEN)]
    assert (row["runs"], row["sent_count"]) == (0, 0)
    assert (await audited(engine))[0][3]["taken_over_from"] == "default"


async def test_a_takeover_waits_for_the_running_pass_and_takes_what_it_leaves(engine: Database) -> None:
    log = await publish(engine, 3)
    await make_router(engine, position=log[0]["id"])
    await make_hole(engine, 1, 4)
    admin, router = await engine.open("route_admin"), await engine.open("event_router")
    async with router.transaction() as running:
        await running.command("SELECT position FROM route_worker_cursors WHERE worker_name = 'default' FOR UPDATE")
        adding = asyncio.create_task(routers.add(admin, "shop", "shop", ACTOR))
        await somebody_waits(engine)
        last = log[2]["id"]
        await running.command(
            f"UPDATE route_worker_cursors SET position = {last}, last_event_id = {last},"
            f" last_event_correlation_id = (SELECT correlation_id FROM events WHERE id = {last}),"
            f" last_event_created_at = (SELECT created_at FROM events WHERE id = {last})"
            " WHERE worker_name = 'default'"
        )
        await running.command("DELETE FROM route_holes WHERE worker_name = 'default'")
        await running.command(
            "INSERT INTO route_holes (worker_name, lo, hi, seen_at)"
            " VALUES ('default', 3, 4, '2026-01-02 03:04:05.678901')"
        )
    await adding
    row = await cursor(engine, "shop")
    assert (row["position"], identity(row)) == (last, of_event(log[2]))
    assert await holes(engine, "shop") == [(3, 4, SEEN)]


@pytest.mark.parametrize(
    ("name", "domain", "field", "words"),
    [
        ("shop", "books", "worker_name", "named 'shop' already, for the domain 'shop'"),
        ("other", "shop", "event_domain", "the router 'shop' already"),
        ("other", "*", "event_domain", "the router 'default' already"),
        ("Shop", "books", "worker_name", "no name"),
        ("a:b", "books", "worker_name", "no name"),
        ("", "books", "worker_name", "no name"),
        ("x" * 61, "books", "worker_name", "no name"),
        ("new\n", "books", "worker_name", "no name"),
        ("other", "", "event_domain", "no domain"),
        ("other", "shop.*", "event_domain", "no domain"),
        ("other", "d" * 101, "event_domain", "no domain"),
        ("other", "two words", "event_domain", "no domain"),
    ],
)
async def test_a_router_that_cannot_be_is_refused_and_leaves_no_trace(
    engine: Database, name: str, domain: str, field: str, words: str
) -> None:
    await make_router(engine)
    await make_router(engine, "shop", "shop")
    await make_hole(engine, 1, 2)
    before = await everything(engine)
    with pytest.raises(InputRefused, match=words) as refused:
        await routers.add(await engine.open("route_admin"), name, domain, ACTOR)
    assert refused.value.field == field
    assert await everything(engine) == before


async def test_of_two_who_take_the_same_domain_at_once_one_is_refused(engine: Database) -> None:
    await make_router(engine, position=4)
    await make_hole(engine, 1, 2)
    admins = [await engine.open("route_admin") for _ in range(2)]
    outcomes = await asyncio.gather(
        routers.add(admins[0], "one", "shop", ACTOR),
        routers.add(admins[1], "two", "shop", ACTOR),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Cursor", "InputRefused"]
    assert len(await holes(engine, "one")) + len(await holes(engine, "two")) == 1
    assert len(await audited(engine)) == 1


# --- skip and rewind -------------------------------------------------------------------------------------------------


async def test_a_skip_moves_forward_to_the_last_event_before_and_leaves_holes_alone(engine: Database) -> None:
    log = await publish(engine, 4)
    await make_router(engine, position=log[0]["id"])
    await make_hole(engine, 1, 50)
    before = await cursor(engine)
    await routers.skip(await engine.open("route_admin"), "default", log[2]["id"], "poison", ACTOR)
    row = await cursor(engine)
    assert (row["position"], identity(row)) == (log[2]["id"], of_event(log[2]))
    assert row["updated_at"] > before["updated_at"]
    assert await holes(engine) == [(1, 50, SEEN)]
    (entry,) = await audited(engine)
    assert entry[:3] == (ACTOR, "router.skipped", "router:default")
    assert entry[3] == {
        "from": {
            "position": log[0]["id"],
            "last_event_id": log[0]["id"],
            "last_event_correlation_id": log[0]["correlation_id"],
        },
        "to": {
            "position": log[2]["id"],
            "last_event_id": log[2]["id"],
            "last_event_correlation_id": log[2]["correlation_id"],
        },
        "reason": "poison",
    }


async def test_a_skip_to_an_id_without_an_event_remembers_the_event_before_it(engine: Database) -> None:
    (first,) = await publish(engine, 1)
    await rolled_back(engine, "event_ingest_writer", "INSERT INTO events (event_type, payload) VALUES ('lost', '1')")
    last = (await publish(engine, 1))[-1]
    await make_router(engine)
    await routers.skip(await engine.open("route_admin"), "default", last["id"] - 1, "why not", ACTOR)
    row = await cursor(engine)
    assert (row["position"], identity(row)) == (last["id"] - 1, of_event(first))
    assert last["id"] - 1 > first["id"]


async def test_a_rewind_moves_back_and_cuts_the_holes(engine: Database) -> None:
    log = await publish(engine, 9)
    await make_router(engine, position=log[8]["id"])
    for lo, hi in ((1, 2), (3, 3), (4, 7), (8, 8)):
        await make_hole(engine, lo, hi)
    await make_hole(engine, 4, 7, name="somebody-else")
    await routers.rewind(await engine.open("route_admin"), "default", 5, "a new route", ACTOR)
    row = await cursor(engine)
    assert (row["position"], identity(row)) == (5, of_event(log[4]))
    assert await holes(engine) == [(1, 2, SEEN), (3, 3, SEEN), (4, 5, SEEN)]
    assert await holes(engine, "somebody-else") == [(4, 7, SEEN)]
    (entry,) = await audited(engine)
    assert entry[1:3] == ("router.rewound", "router:default")
    assert (entry[3]["from"]["position"], entry[3]["to"]["position"]) == (9, 5)


@pytest.mark.parametrize(("to", "left"), [(3, [(1, 3)]), (4, [(1, 4)]), (5, [(1, 4)]), (1, [(1, 1)]), (0, [])])
async def test_a_hole_keeps_exactly_what_lies_below_the_new_place(
    engine: Database, to: int, left: list[tuple[int, int]]
) -> None:
    await make_router(engine, position=9)
    await make_hole(engine, 1, 4)
    await routers.rewind(await engine.open("route_admin"), "default", to, "", ACTOR)
    assert await holes(engine) == [(lo, hi, SEEN) for lo, hi in left]


async def test_a_rewind_to_the_beginning_forgets_the_last_event(engine: Database) -> None:
    log = await publish(engine, 2)
    await make_router(engine, position=log[1]["id"])
    await routers.rewind(await engine.open("route_admin"), "default", 0, "", ACTOR)
    assert identity(await cursor(engine)) == (None, None, None)


Command = Callable[[Engine], Awaitable[object]]
REFUSED: dict[str, tuple[str, Command]] = {
    "a skip backward": ("to", lambda e: routers.skip(e, "default", 1, "r", ACTOR)),
    "a skip to where it is": ("to", lambda e: routers.skip(e, "default", 2, "r", ACTOR)),
    "a skip beyond the log": ("to", lambda e: routers.skip(e, "default", 4, "r", ACTOR)),
    "a skip beyond all numbers": ("to", lambda e: routers.skip(e, "default", 2**70, "r", ACTOR)),
    "a skip without a reason": ("reason", lambda e: routers.skip(e, "default", 3, " ", ACTOR)),
    "a skip by nobody": ("actor", lambda e: routers.skip(e, "default", 3, "r", "")),
    "a rewind forward": ("to", lambda e: routers.rewind(e, "default", 3, "r", ACTOR)),
    "a rewind to where it is": ("to", lambda e: routers.rewind(e, "default", 2, "r", ACTOR)),
    "a rewind below zero": ("to", lambda e: routers.rewind(e, "default", -1, "r", ACTOR)),
    "a confirmation with a bad reason": ("reason", lambda e: routers.confirm(e, "default", "a\nb", ACTOR)),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_a_command_that_cannot_be_is_refused_and_leaves_no_trace(engine: Database, what: str) -> None:
    field, command = REFUSED[what]
    await publish(engine, 3)
    await make_router(engine, position=2)
    await make_hole(engine, 1, 9)
    before = await everything(engine)
    with pytest.raises(InputRefused) as refused:
        await command(await engine.open("route_admin"))
    assert refused.value.field == field
    assert await everything(engine) == before


async def test_a_router_that_is_not_there_takes_no_command(engine: Database) -> None:
    admin = await engine.open("route_admin")
    commands = [
        routers.skip(admin, "x", 1, "r", ACTOR),
        routers.rewind(admin, "x", 0, "", ACTOR),
        routers.confirm(admin, "x", "", ACTOR),
    ]
    for command in commands:
        with pytest.raises(NotFound, match="no router named 'x'"):
            await command
    assert await audited(engine) == []


async def test_a_command_waits_for_the_running_pass(engine: Database) -> None:
    await publish(engine, 3)
    await make_router(engine, position=2)
    admin, router = await engine.open("route_admin"), await engine.open("event_router")
    async with router.transaction() as running:
        await running.command("SELECT position FROM route_worker_cursors WHERE worker_name = 'default' FOR UPDATE")
        skipping = asyncio.create_task(routers.skip(admin, "default", 3, "r", ACTOR))
        await somebody_waits(engine)
        await running.command("UPDATE route_worker_cursors SET position = 3 WHERE worker_name = 'default'")
    with pytest.raises(InputRefused, match="is at 3"):
        await skipping


# --- confirm ---------------------------------------------------------------------------------------------------------


async def test_a_confirmed_router_knows_the_log_as_it_is_now(engine: Database) -> None:
    """After a restore the last routed event may be missing or another one."""
    log = await publish(engine, 3)
    await make_router(engine, position=3)
    await engine.sql(
        "UPDATE route_worker_cursors SET last_event_correlation_id = 'of another time'", role="event_router"
    )
    before = await cursor(engine)
    now = await routers.confirm(await engine.open("route_admin"), "default", "restored", ACTOR)
    row = await cursor(engine)
    assert (row["position"], identity(row)) == (3, of_event(log[2]))
    assert now.place.event_id == 3
    assert row["updated_at"] > before["updated_at"]
    (entry,) = await audited(engine)
    assert entry[:3] == (ACTOR, "router.confirmed", "router:default")
    assert entry[3]["from"]["last_event_correlation_id"] == "of another time"
    assert entry[3]["reason"] == "restored"


MOVE_THE_COUNTER = {
    "postgresql": "SELECT setval(pg_get_serial_sequence('events', 'id'), 7)",
    "mysql": "ALTER TABLE events AUTO_INCREMENT = 8",
}


async def test_nothing_is_confirmed_while_new_events_would_get_numbers_that_were_passed(engine: Database) -> None:
    log = await publish(engine, 3)
    await make_router(engine, position=7)
    before = await everything(engine)
    admin = await engine.open("route_admin")
    with pytest.raises(RouterHeld, match="drawn is 3, and the router default has been at 7") as held:
        await routers.confirm(admin, "default", "", ACTOR)
    assert MOVE_THE_COUNTER[engine.family] in held.value.remedy
    assert await everything(engine) == before

    await engine.sql(MOVE_THE_COUNTER[engine.family])
    await routers.confirm(admin, "default", "", ACTOR)
    assert identity(await cursor(engine)) == of_event(log[2])
    assert (await publish(engine, 1))[-1]["id"] == 8


async def test_nothing_is_confirmed_while_they_would_get_those_of_events_that_were_lost(engine: Database) -> None:
    """Receivers know a delivery by the number of its event."""
    log = await publish(engine, 3)
    await make_router(engine, position=2)
    await engine.sql("UPDATE route_worker_cursors SET last_event_id = 7", role="event_router")
    admin = await engine.open("route_admin")
    with pytest.raises(RouterHeld, match="drawn is 3, and the router default has been at 7"):
        await routers.confirm(admin, "default", "", ACTOR)
    await engine.sql(MOVE_THE_COUNTER[engine.family])
    await routers.confirm(admin, "default", "", ACTOR)
    row = await cursor(engine)
    assert (row["position"], identity(row)) == (2, of_event(log[1]))
