"""Routing in the console: where routers are, gates with who and why, routes with a preview, what was set aside."""

import re
from typing import Any

from tests.console.conftest import SignIn
from tests.support.database import Database
from tests.support.sessions import connect
from tidings.roles.router.router import Router

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
ROUTE = {"event_type": "order.*", "event_domain": "*", "event_stream": "*", "target": "webhook", "enabled": "yes"}
WRONG_ROUTES = [
    ({"event_type": ""}, "event_type"),
    ({"event_type": "a.*.b"}, "event_type"),
    ({"event_domain": "zwei wörter"}, "event_domain"),
    ({"event_stream": "\x00"}, "event_stream"),
    ({"target": "task"}, "task_biz_type"),
    ({"event_type": "taken"}, "event_type"),
]
SNAPSHOT = (
    '{"id": 1, "event_domain": "default", "event_type": "order.paid", "event_stream": "", "correlation_id": "c",'
    ' "payload": "</pre><script>alert(1)</script>"}'
)


async def rows(engine: Database, text: str) -> list[dict[str, Any]]:
    return [dict(row) for row in await engine.sql(text)]


async def open_gates(engine: Database) -> None:
    for gate in ("routing", "router:default"):
        await engine.sql(f"INSERT INTO gates (name, is_open) VALUES ('{gate}', true)")


async def test_gates_are_opened_and_closed_and_say_who_and_why(engine: Database, sign_in: SignIn) -> None:
    operator = await sign_in("operator")
    assert "It was never opened." in await operator.text("/routing")
    text = await operator.after("/routing/gates", name="routing", to="open", reason="maintenance is over")
    assert "The gate routing is open." in text
    assert "maintenance is over" in text
    assert "Last changed by key:" in text
    text = await operator.after("/routing/gates", name="routing", to="close", reason=HOSTILE)
    assert HOSTILE not in text
    assert "&lt;script&gt;" in text
    (gate,) = await rows(engine, "SELECT name, is_open FROM gates")
    assert (gate["name"], bool(gate["is_open"])) == ("routing", False)
    assert "There is no gate" in await operator.after("/routing/gates", name="elsewhere", to="open")


async def test_routes_are_made_changed_switched_and_removed(engine: Database, sign_in: SignIn) -> None:
    admin = await sign_in("admin")
    assert "There is no route" in await admin.text("/routing/routes")
    assert "was added" in await admin.after("/routing/routes", **ROUTE)
    (route,) = await rows(engine, "SELECT id, event_type, target, enabled, dry_run FROM routes")
    path = f"/routing/routes/{route['id']}"
    task = {**ROUTE, "target": "task", "task_biz_type": "MAIL", "dry_run": "yes"}
    assert "was changed" in await admin.after(path, **task)
    assert "Dry run" in await admin.text("/routing/routes")
    text = await admin.after(f"{path}/switch", field="dry_run", to="off")
    assert f"Route {route['id']} is live." in text
    assert "is switched off." in await admin.after(f"{path}/switch", field="enabled", to="off")
    (changed,) = await rows(engine, "SELECT task_biz_type, enabled, dry_run FROM routes")
    assert (changed["task_biz_type"], bool(changed["enabled"]), bool(changed["dry_run"])) == ("MAIL", False, False)
    assert "order.*" in await admin.text(f"{path}/remove")
    assert "is gone" in await admin.after(f"{path}/remove")
    assert await rows(engine, "SELECT id FROM routes") == []
    assert (await admin.get(path)).status_code == 404
    assert (await admin.post(f"{path}/switch", field="id", to="on")).status_code == 422


async def test_what_is_wrong_with_a_route_stands_beside_its_field(engine: Database, sign_in: SignIn) -> None:
    await engine.sql("INSERT INTO routes (event_type, target) VALUES ('taken', 'webhook')")
    admin = await sign_in("admin")
    for given, field in WRONG_ROUTES:
        answer = await admin.post("/routing/routes", **{**ROUTE, **given})
        assert answer.status_code == 422, given
        assert re.search(rf'name="{field}"[^>]*aria-invalid', answer.text), given
        assert f'id="{field}-note"' in answer.text
    assert len(await rows(engine, "SELECT id FROM routes")) == 1


async def test_a_preview_shows_what_would_be_decided_and_writes_nothing(engine: Database, sign_in: SignIn) -> None:
    await engine.sql("INSERT INTO routes (event_type, target) VALUES ('order.*', 'webhook')")
    await engine.sql(
        "INSERT INTO subscriptions (event_type, callback_url, active, verified)"
        " VALUES ('*', 'https://a.example/', true, true), ('*', 'https://b.example/', true, false)"
    )
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}'), ('mail.bounced', '{}')")
    viewer = await sign_in("viewer")
    text = await viewer.text("/routing/preview?last=10")
    assert "order.paid" in text
    assert "No route matches it." in text
    assert 'href="/subscriptions/1"' in text
    assert "left out: 2 (unverified)" in text
    assert "mail.bounced" in text
    assert "mail.bounced" not in await viewer.text("/routing/preview?event=1")
    for query in ("event=0", "event=x", "last=101", "event=99"):
        answer = await viewer.get(f"/routing/preview?{query}")
        assert answer.status_code == 422
        assert "aria-invalid" in answer.text
    assert "There is no event 99." in answer.text
    assert "沒有事件 99。" in (await viewer.get(f"/routing/preview?{query}", **{"Accept-Language": "zh-TW"})).text
    assert await rows(engine, "SELECT id FROM route_attempts") == []


async def test_a_router_shows_its_place_and_who_may_still_fill_its_holes(engine: Database, sign_in: SignIn) -> None:
    await open_gates(engine)
    viewer = await sign_in("viewer")
    assert "No router has run yet" in await viewer.text("/routing")
    session = await connect(engine.url("event_ingest_writer"))
    await session.run("BEGIN")
    await session.run("INSERT INTO events (event_type, payload) VALUES ('late', '{}')")
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('early', '{}')")
    router = Router(await engine.open("event_router"), "default")
    await router.step()
    text = await viewer.text("/routing/routers/default")
    assert "1 numbers in 1 ranges" in text
    if engine.family == "postgresql":
        assert re.search(r"Session \d+ \(.*\) has had a transaction open", text)
    else:
        assert "No open session is shown" in text
    assert "1 numbers in 1 ranges" in await viewer.text("/routing")
    await session.run("ROLLBACK")
    await session.close()
    await router.close()
    assert (await viewer.get("/routing/routers/nobody")).status_code == 404


async def position(engine: Database) -> int:
    return int(await engine.value("SELECT position FROM route_worker_cursors"))


async def test_a_router_is_rewound_and_skipped_by_forms_that_say_what_is_wrong(
    engine: Database, sign_in: SignIn
) -> None:
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}'), ('b', '{}'), ('c', '{}')")
    await engine.sql("INSERT INTO route_worker_cursors (worker_name, position) VALUES ('default', 2)")
    admin, path = await sign_in("admin"), "/routing/routers/default"
    assert f'action="{path}/skip"' in await admin.text(path)
    for command, given, field in (
        ("rewind", {}, "rewind_to"),
        ("rewind", {"rewind_to": "x"}, "rewind_to"),
        ("rewind", {"rewind_to": "2"}, "rewind_to"),
        ("skip", {"skip_to": "3"}, "skip_reason"),
        ("skip", {"skip_to": "4", "skip_reason": "r"}, "skip_to"),
        ("skip", {"skip_to": "3", "skip_reason": "x" * 501}, "skip_reason"),
    ):
        answer = await admin.post(f"{path}/{command}", **given)
        assert answer.status_code == 422, given
        assert re.search(rf'name="{field}"[^>]*aria-invalid', answer.text), given
        assert re.search(rf"<details[^>]* open><summary[^>]*>{command.title()}<", answer.text), given
    assert await position(engine) == 2
    text = await admin.after(f"{path}/rewind", rewind_to="0", rewind_reason="once more")
    assert "The router default goes on after event 0." in text
    assert await position(engine) == 0
    await admin.after(f"{path}/skip", skip_to="3", skip_reason=HOSTILE)
    assert await position(engine) == 3
    deeds = await rows(engine, "SELECT actor, action, subject FROM audit_log WHERE action LIKE 'router.%' ORDER BY id")
    assert [one["action"] for one in deeds] == ["router.rewound", "router.skipped"]
    assert all(one["actor"].startswith("key:") and one["subject"] == "router:default" for one in deeds)
    assert HOSTILE not in await admin.text("/audit")
    assert (await admin.post("/routing/routers/nobody/rewind", rewind_to="0")).status_code == 404


async def test_a_router_that_holds_is_confirmed_and_goes_on(engine: Database, sign_in: SignIn) -> None:
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('a', '{}')")
    await engine.sql(
        "INSERT INTO route_worker_cursors (worker_name, position, last_event_id, last_event_correlation_id)"
        " VALUES ('default', 1, 1, 'another')"
    )
    operator, path = await sign_in("operator"), "/routing/routers/default"
    text = await operator.text(path)
    assert "It waits for a person" in text
    assert f'action="{path}/confirm"' in text
    assert "tidings routers confirm default" in await (await sign_in("viewer")).text(path)
    text = await operator.after(f"{path}/confirm", confirm_reason="restored from a copy")
    assert "goes on after event 1" in text
    assert "It waits for a person" not in text
    await engine.sql("UPDATE route_worker_cursors SET position = 50, last_event_id = 50")
    assert "The highest event number drawn is 1" in await operator.after(f"{path}/confirm")


async def test_what_could_not_be_routed_is_replayed(engine: Database, sign_in: SignIn) -> None:
    await engine.sql("INSERT INTO routes (event_type, target, dry_run) VALUES ('*', 'webhook', true)")
    await engine.sql("INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}')")
    await engine.sql("INSERT INTO route_worker_cursors (worker_name) VALUES ('default')")
    await engine.sql(
        "INSERT INTO route_dead_letters (event_id, worker_name, idempotency_key, event_snapshot, error)"
        f" VALUES (1, 'default', 'wrk:default:-:1', '{SNAPSHOT}', '{HOSTILE}')"
    )
    operator = await sign_in("operator")
    assert "1 events could not be routed" in await operator.text("/routing")
    text = await operator.text("/routing/dead-letters") + await operator.text("/routing/dead-letters/1")
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert 'class="flash bad"' in await operator.after("/routing/dead-letters/1/replay")
    assert (await rows(engine, "SELECT resolved_at FROM route_dead_letters")) == [{"resolved_at": None}]
    await open_gates(engine)
    assert "It was routed." in await operator.after("/routing/dead-letters/1/replay")
    assert "It had been resolved before" in await operator.after("/routing/dead-letters/1/replay")
    assert "/routing/dead-letters/1" not in await operator.text("/routing/dead-letters")
    assert "/routing/dead-letters/1" in await operator.text("/routing/dead-letters?all=yes")


async def test_who_may_not_sees_no_buttons_and_is_refused(engine: Database, sign_in: SignIn) -> None:
    """Gates, replays and going back are an operator's, routes and skipping an admin's; none is for one domain."""
    await engine.sql("INSERT INTO routes (event_type, target) VALUES ('*', 'webhook')")
    await engine.sql("INSERT INTO route_worker_cursors (worker_name, position) VALUES ('default', 2)")
    viewer, operator, bound = await sign_in("viewer"), await sign_in("operator"), await sign_in("viewer", domain="eu")
    router = "/routing/routers/default"
    pages = ("/routing", "/routing/routes", "/routing/routes/1", "/routing/preview", "/routing/dead-letters", router)
    for path in pages:
        assert 'action="/routing' not in (await viewer.text(path)).replace('action="/routing/preview"', "")
        assert (await bound.get(path)).status_code == 403
    assert 'action="/routing/routes' not in await operator.text("/routing/routes/1")
    assert re.findall(r'action="/routing[^"]*/(\w+)"', await operator.text(router)) == ["rewind"]
    routes = ("/routing/routes", "/routing/routes/1", "/routing/routes/1/switch", "/routing/routes/1/remove")
    for_admins = (*routes, f"{router}/skip")
    for path in for_admins:
        for person in (viewer, operator, bound):
            assert (await person.post(path, **ROUTE, field="enabled", to="off")).status_code == 403
    for path in ("/routing/routes/new", "/routing/routes/1/remove"):
        assert (await operator.get(path)).status_code == 403
    for path in ("/routing/gates", "/routing/dead-letters/1/replay", f"{router}/rewind", f"{router}/confirm"):
        for person in (viewer, bound):
            assert (await person.post(path, name="routing", to="open")).status_code == 403
    assert await rows(engine, "SELECT name FROM gates") == []
    assert len(await rows(engine, "SELECT id FROM routes")) == 1
