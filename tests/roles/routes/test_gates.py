"""Gates are opened and closed by a person, audited; a closing outlasts every pass that had not seen it."""

import asyncio

import pytest

from tests.roles.routes.scene import ACTOR, audited, make_router, stored
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tidings.errors import InputRefused
from tidings.roles.routes import gates


async def test_a_gate_is_made_when_it_is_first_opened_and_kept_when_it_is_closed(engine: Database) -> None:
    admin = await engine.open("route_admin")
    await gates.open(admin, "router:default", "", ACTOR)
    await gates.close(admin, "router:default", "the shelves are moved", "cli:olaf")
    (gate,) = await stored(engine, "gates")
    assert (gate["name"], bool(gate["is_open"]), gate["reason"]) == ("router:default", False, "the shelves are moved")
    assert gate["changed_by"] == "cli:olaf"
    opened = {"name": "router:default", "is_open": True, "reason": ""}
    closed = {"name": "router:default", "is_open": False, "reason": "the shelves are moved"}
    assert await audited(engine) == [
        (ACTOR, "gate.opened", "gate:router:default", {"before": None, "after": opened}),
        ("cli:olaf", "gate.closed", "gate:router:default", {"before": opened, "after": closed}),
    ]


async def test_closing_a_missing_gate_makes_it_closed(engine: Database) -> None:
    await gates.close(await engine.open("route_admin"), "routing", "", ACTOR)
    (gate,) = await stored(engine, "gates")
    assert not gate["is_open"]


async def test_closing_ends_only_after_the_pass_that_holds_its_cursor(engine: Database) -> None:
    """The router reads the gates after it has locked its cursor, so this pass may have seen the gate open."""
    await make_router(engine)
    admin, router = await engine.open("route_admin"), await engine.open("event_router")
    await gates.open(admin, "routing", "", ACTOR)
    async with router.transaction() as running:
        await running.command("SELECT worker_name FROM route_worker_cursors WHERE worker_name = 'default' FOR UPDATE")
        closing = asyncio.create_task(gates.close(admin, "routing", "stop", ACTOR))
        await somebody_waits(engine)
        # For those who come now it is closed already.
        assert not await engine.value("SELECT is_open FROM gates WHERE name = 'routing'")
        assert not closing.done()
    await closing


async def test_opening_waits_for_no_router(engine: Database) -> None:
    await make_router(engine)
    admin, router = await engine.open("route_admin"), await engine.open("event_router")
    async with router.transaction() as running:
        await running.command("SELECT worker_name FROM route_worker_cursors WHERE worker_name = 'default' FOR UPDATE")
        await asyncio.wait_for(gates.open(admin, "routing", "", ACTOR), timeout=10)


async def test_two_who_make_the_same_gate_at_once_both_succeed(engine: Database) -> None:
    admin, other = await engine.open("route_admin"), await engine.open("route_admin")
    async with other.transaction() as transaction:
        await transaction.command("INSERT INTO gates (name, is_open) VALUES ('routing', false)")
        opening = asyncio.create_task(gates.open(admin, "routing", "", ACTOR))
        await somebody_waits(engine)
    await opening
    (gate,) = await stored(engine, "gates")
    assert gate["is_open"]
    assert [action for _, action, _, _ in await audited(engine)] == ["gate.opened"]


@pytest.mark.parametrize(
    ("field", "name", "reason"),
    [
        ("name", "rooting", ""),
        ("name", "router:", ""),
        ("name", "router:Big", ""),
        ("name", "router:a:b", ""),
        ("name", "router:" + "x" * 61, ""),
        ("name", "routing\n", ""),
        ("reason", "routing", "r" * 501),
        ("reason", "routing", "a\x00b"),
        ("reason", "routing", "lone \ud800"),
    ],
)
async def test_a_gate_that_cannot_be_is_refused_and_leaves_no_trace(
    engine: Database, field: str, name: str, reason: str
) -> None:
    admin = await engine.open("route_admin")
    for change in (gates.open, gates.close):
        with pytest.raises(InputRefused) as refused:
            await change(admin, name, reason, ACTOR)
        assert refused.value.field == field
    assert await stored(engine, "gates") == []
    assert await audited(engine) == []
