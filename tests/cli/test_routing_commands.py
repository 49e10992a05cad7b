"""`routes`, `gates`, `routers`, `events` and `route-dead-letters` as processes, and what `doctor` makes of it all."""

import pytest

from tests.roles.routes.scene import audited, make_hole, make_router, publish, stored
from tests.support.commands import Shell
from tests.support.database import Database

pytestmark = pytest.mark.slow


async def test_a_route_from_its_making_to_its_end(engine: Database, shell: Shell) -> None:
    made = shell.json("routes", "add", "--type", "order.*", "--task", "EMAIL_SEND", "--stream", "")
    assert (made["target"], made["task_biz_type"], made["event_stream"]) == ("task", "EMAIL_SEND", "")
    shell.says("routes", "edit", str(made["id"]), "--disable", "--dry-run", "--domain", "shop")
    (listed,) = shell.json("routes", "list")
    assert (listed["event_domain"], listed["enabled"], listed["dry_run"]) == ("shop", False, True)
    assert "(empty)" in shell.says("routes", "list")
    shell.says("routes", "remove", str(made["id"]))
    assert shell.json("routes", "list") == []
    trail = await audited(engine)
    assert [action for _, action, _, _ in trail] == ["route.created", "route.changed", "route.removed"]
    assert all(actor.startswith("cli:") for actor, _, _, _ in trail)


def test_a_tie_and_a_bad_pattern_are_said_in_a_sentence_and_exit_2(shell: Shell) -> None:
    made = shell.json("routes", "add", "--type", "*")
    assert f"Route {made['id']} has the same patterns" in shell.says("routes", "add", "--type", "*", exit=2)
    assert "is no pattern" in shell.says("routes", "add", "--type", "a*b", exit=2)
    assert "There is no route 99" in shell.says("routes", "remove", "99", exit=1)


async def test_gates_are_listed_opened_and_closed(engine: Database, shell: Shell) -> None:
    assert shell.says("gates", "list").count("never opened") == 2
    shell.says("gates", "open", "--all")
    assert {gate["name"]: gate["is_open"] for gate in shell.json("gates", "list")} == {
        "routing": True,
        "router:default": True,
    }
    shell.says("gates", "close", "routing", "--reason", "[red] shelves")
    assert "[red] shelves" in shell.says("gates", "list")
    assert "The gates are routing" in shell.says("gates", "open", "rooting", exit=2)
    assert "--all" in shell.says("gates", "open", exit=2)
    assert "--all" in shell.says("gates", "close", "routing", "--all", exit=2)
    assert len(await audited(engine)) == 3


async def test_a_router_is_added_and_shown(engine: Database, shell: Shell) -> None:
    assert "no router yet" in shell.says("routers", "list")
    await make_router(engine, position=1)
    await make_hole(engine, 1, 1)
    assert "gates open router:shop" in shell.says("routers", "add", "shop", "--domain", "shop")
    assert [(router["worker_name"], router["position"]) for router in shell.json("routers", "list")] == [
        ("default", 1),
        ("shop", 1),
    ]
    assert shell.json("routers", "show", "shop")["hole_ids"] == 1
    assert "hole_ids" in shell.says("routers", "show", "shop")
    assert "no router named 'x'" in shell.says("routers", "show", "x", exit=1)


async def test_a_router_is_skipped_rewound_and_confirmed(engine: Database, shell: Shell) -> None:
    await publish(engine, 3)
    await make_router(engine, position=1)
    shell.says("routers", "skip", "default", "--to", "3", "--reason", "poison")
    assert "can't skip" in shell.says("routers", "skip", "default", "--to", "2", "--reason", "again", exit=2)
    shell.says("routers", "rewind", "default", "--to", "2")
    shell.says("routers", "confirm", "default", "--reason", "looked at it")
    assert [action for _, action, _, _ in await audited(engine)] == [
        "router.skipped",
        "router.rewound",
        "router.confirmed",
    ]
    (row,) = await stored(engine, "route_worker_cursors")
    assert (row["position"], row["last_event_id"]) == (2, 2)


async def test_events_are_listed_by_what_an_index_serves(engine: Database, shell: Shell) -> None:
    assert "no such event" in shell.says("events", "list")
    await publish(engine, 3)
    assert [event["id"] for event in shell.json("events", "list", "--limit", "2")] == [3, 2]
    assert "--before 2" in shell.says("events", "list", "--limit", "2")
    assert [event["id"] for event in shell.json("events", "list", "--type", "order.paid", "--before", "3")] == [2, 1]
    assert len(shell.json("events", "list", "--since", "1h")) == 3
    assert "--before 2" in shell.says("events", "list", "--since", "1h", "--limit", "2")
    assert [event["id"] for event in shell.json("events", "list", "--since", "1h", "--before", "2")] == [1]
    assert shell.json("events", "list", "--until", "2020-01-01") == []
    assert shell.json("events", "list", "--external-id", "none") == []


async def test_an_event_is_shown_whole(engine: Database, shell: Shell) -> None:
    await publish(engine, 1)
    assert "No router has decided" in shell.says("events", "show", "1")
    assert shell.json("events", "show", "1")["payload"] == 0


def test_what_no_index_serves_and_what_is_no_moment_is_refused(shell: Shell) -> None:
    assert "no moment" in shell.says("events", "list", "--since", "soon", exit=2)
    assert "can't be combined" in shell.says("events", "list", "--since", "1h", "--type", "t", exit=2)


async def bury(engine: Database) -> None:
    await engine.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
        " VALUES (5, 'default', 'k', '{\"id\": 5}', 'the row was too long')",
        role="event_router",
    )


async def test_routing_dead_letters_are_listed_and_shown(engine: Database, shell: Shell) -> None:
    assert "none that is unresolved" in shell.says("route-dead-letters", "list")
    await bury(engine)
    (letter,) = shell.json("route-dead-letters", "list")
    assert (letter["event_id"], letter["error"]) == (5, "the row was too long")
    assert "the row was too long" in shell.says("route-dead-letters", "list", "--all")
    assert shell.json("route-dead-letters", "show", "1")["event_snapshot"] == {"id": 5}
    assert "no routing dead letter 2" in shell.says("route-dead-letters", "show", "2", exit=1)
    finding = shell.doctor()["routing dead letters"]
    assert finding["health"] == "doubtful"
    assert "the row was too long" in finding["says"]


MANY_RESOLVED = {
    "postgresql": "FROM generate_series(6, 2105) n",
    "mysql": "FROM (SELECT seq AS n FROM seq_6_to_2105) many",
}


async def test_an_unresolved_one_is_found_behind_many_that_are_resolved(engine: Database, shell: Shell) -> None:
    """A page looks at a bounded number of rows; the list goes on until one of them has something."""
    await bury(engine)
    await engine.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error, resolved_at)"
        f" SELECT n, 'default', concat('k', n), '1', 'gone', CURRENT_TIMESTAMP {MANY_RESOLVED[engine.family]}",
        role="admin",
    )
    assert [letter["event_id"] for letter in shell.json("route-dead-letters", "list")] == [5]


async def test_doctor_doubts_closed_gates_and_old_holes(engine: Database, shell: Shell) -> None:
    await publish(engine, 2)
    found = shell.doctor()
    assert found["gates"]["health"] == found["routers"]["health"] == "doubtful"
    shell.says("gates", "open", "--all")
    shell.says("gates", "close", "router:default", "--reason", "stocktaking")
    await make_router(engine, position=1)
    await make_hole(engine, 1, 1)
    found = shell.doctor()
    assert found["gates"]["health"] == "doubtful"
    assert found["gates"]["says"] == "closed: router:default (stocktaking)"
    assert "tidings gates open router:default" in found["gates"]["remedy"]
    assert found["routers"]["health"] == "doubtful"
    assert "open transaction" in found["routers"]["remedy"]


async def test_tables_fit_into_80_columns(engine: Database, shell: Shell) -> None:
    await publish(engine, 1)
    await make_router(engine, position=1)
    await bury(engine)
    shell.says("routes", "add", "--type", "order.*", "--task", "EMAIL_SEND_" * 4)
    for command in ("routes", "gates", "routers", "events", "route-dead-letters"):
        shown = shell.says(command, "list", COLUMNS="80")
        assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80, shown
    assert len(await stored(engine, "routes")) == 1
