"""The audit log in the console: found by who, what, to which thing and when; what changed can be read."""

import re
from typing import Any

import pytest

from tests.api.conftest import Served
from tests.console.conftest import SignIn
from tests.support.database import Database
from tidings.console.audit import place_of
from tidings.console.differences import Difference, differences

FOUND: dict[str, list[str]] = {
    "": ["gate:routing", "route:2", "route:1"],
    "actor=ada": ["gate:routing", "route:1"],
    "action=route.changed": ["route:2", "route:1"],
    "target=route:2": ["route:2"],
    "target=route:": ["route:2", "route:1"],
    "actor=ada&target=route:": ["route:1"],
    "actor=bob&target=route:1": [],
    "since=2026-01-02T00:00": ["gate:routing", "route:2"],
    "since=2026-01-01T12:00&until=2026-01-02T12:00": ["route:2"],
    "actor=nobody": [],
}
HOSTILE = "<script>alert(1)</script>"


def subjects(text: str) -> list[str]:
    return re.findall(r'<td><(?:a|span) class="mono"[^>]*>((?:route|gate|task):[^<]*)<', text)


async def write(engine: Database, *entries: tuple[str, str, str, str]) -> None:
    values = ", ".join(f"('{who}', '{action}', '{subject}', '{{}}', '{at}')" for who, action, subject, at in entries)
    await engine.sql(f"INSERT INTO audit_log (actor, action, subject, detail, created_at) VALUES {values}")


async def test_entries_are_found_by_who_what_to_which_thing_and_when(engine: Database, sign_in: SignIn) -> None:
    await write(
        engine,
        ("ada", "route.changed", "route:1", "2026-01-01"),
        ("bob", "route.changed", "route:2", "2026-01-02"),
        ("ada", "gate.opened", "gate:routing", "2026-01-03"),
    )
    viewer = await sign_in("viewer")
    for query, found in FOUND.items():
        text = await viewer.text(f"/audit?{query}")
        assert subjects(text) == found, query
        assert ("No entry fits" in text) == (not found)


async def test_the_log_comes_in_pages(engine: Database, sign_in: SignIn) -> None:
    await write(engine, *(("ada", "task.retried", f"task:{n}", "2026-01-01") for n in range(120)))
    viewer = await sign_in("viewer")
    for path in ("/audit?until=2026-01-02T00:00", "/audit?actor=ada&until=2026-01-02T00:00"):
        seen, following = [], path
        while following:
            text = await viewer.text(following)
            seen += subjects(text)
            (*_, following) = ["", *re.findall(r'rel="next" href="([^"]+)"', text)]
            following = following.replace("&amp;", "&")
        assert seen == [f"task:{n}" for n in reversed(range(120))]


async def test_what_was_done_over_http_is_told_with_the_key_and_the_request(served: Served, sign_in: SignIn) -> None:
    admin = served.as_("admin")
    made = (await admin.post("/v1/routes", json={"event_type": "order.*"})).json()
    changed = await admin.patch(f"/v1/routes/{made['id']}", json={"dry_run": True})
    text = await (await sign_in("viewer")).text("/audit?action=route.changed")
    assert '<span class="quiet">dry_run</span> <del>false</del> → <ins>true</ins>' in text
    assert "event_stream" not in text  # only what differs
    assert f'title="{changed.headers["x-request-id"]}"' in text
    assert "127.0.0.1" in text
    assert re.search(r">test</a><br><span[^>]*>key:", text)  # the name of the key
    assert f'href="/routing/routes/{made["id"]}"' in text


async def test_what_others_wrote_is_text_and_leads_nowhere(engine: Database, sign_in: SignIn) -> None:
    await engine.sql(
        "INSERT INTO audit_log (actor, action, subject, detail) VALUES"
        f" ('{HOSTILE}', '{HOSTILE}', 'route:{HOSTILE}', '{{\"{HOSTILE}\": \"{HOSTILE}\"}}'),"
        " ('a', 'b', 'route:../../sign-out', '[1]'), ('a', 'b', 'router:javascript:alert(1)', 'null')"
    )
    text = await (await sign_in("viewer")).text("/audit")
    assert "&lt;script&gt;" in text
    assert HOSTILE not in text
    assert 'href="/routing/routes/..' not in text
    assert 'href="javascript' not in text


@pytest.mark.parametrize(
    ("subject", "place"),
    [
        ("subscription:7", "/subscriptions/7"),
        ("router:eu-1", "/routing/routers/eu-1"),
        ("mass_requeue:3", "/dead-letters/requeues/3"),
        ("dead_letters", "/dead-letters"),
        ("gate:router:eu", "/routing"),
        ("sagas", ""),
        ("mass_requeue:../3", ""),
    ],
)
def test_what_somebody_acted_on_leads_to_its_page(subject: str, place: str) -> None:
    assert place_of(subject) == place


async def test_what_nobody_can_look_for_is_said_beside_its_field(sign_in: SignIn) -> None:
    viewer = await sign_in("viewer")
    for query in ("actor=%00", "action=a%20b", "since=x", "until=9999-99-99", "target=a%0ab"):
        answer = await viewer.get(f"/audit?{query}")
        assert answer.status_code == 422, query
        assert "aria-invalid" in answer.text


async def test_a_key_of_one_domain_does_not_see_it(sign_in: SignIn) -> None:
    assert (await (await sign_in("viewer", domain="eu")).get("/audit")).status_code == 403


@pytest.mark.parametrize(
    ("detail", "told"),
    [
        (None, []),
        ({}, []),
        (
            {"before": {"a": 1, "b": 2}, "after": {"a": 1, "b": 3, "c": "x"}},
            [("b", "2", "3"), ("c", None, "x")],
        ),
        ({"before": None, "after": {"a": True}}, [("a", None, "true")]),
        ({"before": {"a": "x"}, "after": None}, [("a", "x", None)]),
        (
            {"from": {"position": 1}, "to": {"position": 9}, "reason": "why"},
            [("position", "1", "9"), ("reason", None, "why")],
        ),
        (
            {"callback_url": {"from": "a", "to": "b"}, "headers": "replaced"},
            [("callback_url", "a", "b"), ("headers", None, "replaced")],
        ),
        ({"ids": [1, 2]}, [("ids", None, "[1, 2]")]),
        ([1], [("", None, "[1]")]),
        ({"a": None, "b": False}, [("b", None, "false")]),
    ],
)
def test_of_two_states_only_what_differs_is_told(detail: Any, told: list[tuple[str, str | None, str | None]]) -> None:
    assert differences(detail) == [Difference(*one) for one in told]
