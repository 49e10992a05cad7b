"""Routes are written with their audit row or not at all, and never tie."""

import asyncio
from dataclasses import asdict, replace

import pytest

from tests.roles.routes.scene import ACTOR, audited, stored, webhook
from tests.support.database import Database
from tests.support.locks import somebody_waits
from tidings.errors import InputRefused, NotFound, RouteRefused
from tidings.model.route import Route, RouteTarget
from tidings.roles.routes import routes

pytestmark = pytest.mark.slow

TASK = {"target": RouteTarget.TASK, "task_biz_type": "EMAIL_SEND"}


async def test_a_new_route_is_stored_and_audited(engine: Database) -> None:
    made = await routes.add(await engine.open("route_admin"), webhook("order.*", dry_run=True), ACTOR)
    (row,) = await stored(engine, "routes")
    assert (row["id"], row["event_type"], row["event_domain"], row["event_stream"]) == (made.id, "order.*", "*", "*")
    assert (row["target"], row["task_biz_type"], bool(row["enabled"]), bool(row["dry_run"])) == ("webhook", "", 1, 1)
    assert await audited(engine) == [
        (ACTOR, "route.created", f"route:{made.id}", {"before": None, "after": asdict(made)})
    ]


async def test_an_edit_changes_what_is_named_and_keeps_the_rest(engine: Database) -> None:
    admin = await engine.open("route_admin")
    made = await routes.add(admin, webhook("order.*", event_stream=""), ACTOR)
    (before,) = await stored(engine, "routes")
    edited = await routes.edit(admin, made.id, ACTOR, enabled=False, event_domain="shop")
    (after,) = await stored(engine, "routes")
    assert edited == replace(made, enabled=False, event_domain="shop")
    assert (after["event_type"], after["event_stream"], after["event_domain"]) == ("order.*", "", "shop")
    assert after["updated_at"] > before["updated_at"]
    assert (await audited(engine))[1:] == [
        (ACTOR, "route.changed", f"route:{made.id}", {"before": asdict(made), "after": asdict(edited)})
    ]


async def test_an_edit_that_changes_nothing_leaves_no_trace(engine: Database) -> None:
    admin = await engine.open("route_admin")
    made = await routes.add(admin, webhook("order.*"), ACTOR)
    before = await stored(engine, "routes")
    assert await routes.edit(admin, made.id, ACTOR, enabled=True) == made
    assert await stored(engine, "routes") == before
    assert len(await audited(engine)) == 1


async def test_a_route_that_is_turned_to_webhooks_loses_its_task_type(engine: Database) -> None:
    admin = await engine.open("route_admin")
    made = await routes.add(admin, webhook("order.*", **TASK), ACTOR)
    assert (await routes.edit(admin, made.id, ACTOR, target=RouteTarget.WEBHOOK)).task_biz_type == ""


async def test_a_removed_route_is_gone_and_the_audit_log_knows_what_it_was(engine: Database) -> None:
    admin = await engine.open("route_admin")
    made = await routes.add(admin, webhook("order.*", **TASK), ACTOR)
    assert await routes.remove(admin, made.id, ACTOR) == made
    assert await stored(engine, "routes") == []
    assert (await audited(engine))[1:] == [
        (ACTOR, "route.removed", f"route:{made.id}", {"before": asdict(made), "after": None})
    ]


async def test_a_route_that_is_not_there_can_be_neither_edited_nor_removed(engine: Database) -> None:
    admin = await engine.open("route_admin")
    with pytest.raises(NotFound, match="no route 7"):
        await routes.edit(admin, 7, ACTOR, enabled=False)
    with pytest.raises(NotFound, match="no route 7"):
        await routes.remove(admin, 7, ACTOR)
    assert await audited(engine) == []


NOT_TIED = [
    webhook("order.*", event_domain="shop"),
    webhook("order.*", event_stream=""),
    webhook("order.paid.*"),
    webhook("ORDER.*"),
    webhook("order.*", **TASK),
    webhook("order.*", **{**TASK, "task_biz_type": "email_send"}),
]


async def test_a_tie_is_refused_and_the_other_route_is_named(engine: Database) -> None:
    admin = await engine.open("route_admin")
    first = await routes.add(admin, webhook("order.*"), ACTOR)
    others = [await routes.add(admin, route, ACTOR) for route in NOT_TIED]
    with pytest.raises(RouteRefused, match=f"Route {first.id} has the same patterns"):
        await routes.add(admin, webhook("order.*", enabled=False, dry_run=True), ACTOR)
    with pytest.raises(RouteRefused, match=f"Route {first.id} has the same patterns"):
        await routes.edit(admin, others[2].id, ACTOR, event_type="order.*")
    assert len(await stored(engine, "routes")) == len(await audited(engine)) == 1 + len(NOT_TIED)


async def test_of_two_who_write_the_same_route_at_once_one_is_refused(engine: Database) -> None:
    """The second one waits for the first one's transaction, and meets the unique index."""
    admin, other = await engine.open("route_admin"), await engine.open("route_admin")
    async with other.transaction() as transaction:
        await transaction.command("INSERT INTO routes (event_type, target) VALUES ('order.*', 'webhook')")
        second = asyncio.create_task(routes.add(admin, webhook("order.*"), ACTOR))
        await somebody_waits(engine)
    with pytest.raises(RouteRefused, match="the same patterns"):
        await second
    assert len(await stored(engine, "routes")) == 1
    assert await audited(engine) == []


async def test_of_many_who_add_the_same_route_one_succeeds_and_all_others_hear_of_it(engine: Database) -> None:
    admins = [await engine.open("route_admin") for _ in range(4)]
    outcomes = await asyncio.gather(
        *(routes.add(admin, webhook("order.*"), ACTOR) for admin in admins), return_exceptions=True
    )
    (made,) = [outcome for outcome in outcomes if isinstance(outcome, Route)]
    refused = [outcome for outcome in outcomes if isinstance(outcome, RouteRefused)]
    assert len(refused) == 3
    assert all(f"Route {made.id} " in error.what for error in refused)
    assert len(await audited(engine)) == 1


async def test_of_two_edits_towards_the_same_patterns_one_is_refused(engine: Database) -> None:
    admin, other = await engine.open("route_admin"), await engine.open("route_admin")
    a = await routes.add(admin, webhook("a"), ACTOR)
    b = await routes.add(admin, webhook("b"), ACTOR)
    outcomes = await asyncio.gather(
        routes.edit(admin, a.id, ACTOR, event_type="c"),
        routes.edit(other, b.id, ACTOR, event_type="c"),
        return_exceptions=True,
    )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Route", "RouteRefused"]
    assert sorted(row["event_type"] == "c" for row in await stored(engine, "routes")) == [False, True]


REFUSED = {
    "a star in the middle": ("event_type", webhook("order.*.paid")),
    "a star in a segment": ("event_type", webhook("order.pa*")),
    "two stars": ("event_type", webhook("*.*")),
    "only a tail": ("event_type", webhook(".*")),
    "no type": ("event_type", webhook("")),
    "a space": ("event_type", webhook("order paid")),
    "a line break": ("event_type", webhook("order.paid\n")),
    "a null": ("event_type", webhook("a\x00")),
    "no ASCII": ("event_type", webhook("börder")),
    "too long a type": ("event_type", webhook("t" * 101)),
    "no domain": ("event_domain", webhook("t", event_domain="")),
    "too long a domain": ("event_domain", webhook("t", event_domain="d" * 99 + ".*")),
    "a bad stream": ("event_stream", webhook("t", event_stream="**")),
    "a task without a type": ("task_biz_type", webhook("t", target=RouteTarget.TASK)),
    "a webhook with a task type": ("task_biz_type", webhook("t", task_biz_type="EMAIL")),
    "too long a task type": ("task_biz_type", webhook("t", target=RouteTarget.TASK, task_biz_type="T" * 51)),
    "a task type with a space": ("task_biz_type", webhook("t", target=RouteTarget.TASK, task_biz_type="A B")),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_bad_input_is_refused_by_its_field_and_leaves_no_trace(engine: Database, what: str) -> None:
    field, route = REFUSED[what]
    admin = await engine.open("route_admin")
    with pytest.raises(RouteRefused) as refused:
        await routes.add(admin, route, ACTOR)
    assert refused.value.field == field
    made = await routes.add(admin, webhook("fine"), ACTOR)
    with pytest.raises(RouteRefused) as refused:
        await routes.edit(admin, made.id, ACTOR, **{k: v for k, v in asdict(route).items() if k != "id"})
    assert refused.value.field == field
    assert [row["event_type"] for row in await stored(engine, "routes")] == ["fine"]
    assert len(await audited(engine)) == 1


@pytest.mark.parametrize("route", [webhook("t" * 100), webhook("*", event_stream=""), webhook("a.b-c_d:e/f.*")])
async def test_what_is_allowed_is_stored_as_written(engine: Database, route: Route) -> None:
    made = await routes.add(await engine.open("route_admin"), route, ACTOR)
    assert replace(made, id=0) == route


@pytest.mark.parametrize("actor", ["", "x" * 201, "two\nlines"])
async def test_nobody_changes_a_route_without_a_name(engine: Database, actor: str) -> None:
    with pytest.raises(InputRefused) as refused:
        await routes.add(await engine.open("route_admin"), webhook("t"), actor)
    assert refused.value.field == "actor"
    assert await stored(engine, "routes") == []
