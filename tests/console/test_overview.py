"""The overview shows what flows and what waits, from the tables as they are."""

import re

from tests.api.conftest import Served
from tests.console.conftest import SignIn
from tests.support.engine_words import Words


async def fill(served: Served) -> None:
    run = served.database.sql
    await run("INSERT INTO events (event_type, payload) VALUES ('order.paid', '{}'), ('order.paid', '{}')")
    await run(
        "INSERT INTO subscriptions (event_type, callback_url, description, active, verified)"
        " VALUES ('*', 'https://down.example/hook', 'Billing <b>', true, true)"
    )
    await run(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id)"
        " SELECT e.id, s.id, 'c' FROM events e CROSS JOIN subscriptions s"
    )
    await run("INSERT INTO gates (name, is_open, changed_by) VALUES ('routing', true, 'cli:root')")
    await run("INSERT INTO route_worker_cursors (worker_name) VALUES ('default')")
    await run("INSERT INTO sys_pending_tasks (biz_type, biz_key) VALUES ('EMAIL_SEND', '1')")


async def test_depths_lags_gates_and_tasks_are_shown(sign_in: SignIn, served: Served) -> None:
    await fill(served)
    page = await (await sign_in("viewer")).text("/")
    boxes = dict(re.findall(r'class="name"[^>]*>([^<]+)</text>\s*<text class="value"[^>]*>([^<]+)<', page))
    assert boxes["Deliveries due"] == "2"
    assert boxes["Router"] == "2"
    assert boxes["Tasks due"] == "1"
    assert "EMAIL_SEND" in page
    assert "none alive" in page
    assert re.search(r"routing</a></td><td[^>]*><span class=\"badge good\">Open", page)


async def test_totals_are_drawn_and_failing_endpoints_named_as_text(sign_in: SignIn, served: Served) -> None:
    await fill(served)
    id = await served.database.value("SELECT MAX(id) FROM subscriptions")
    now = Words(served.database).now
    for subscription in (0, id):
        await served.database.sql(
            "INSERT INTO delivery_totals (subscription_id, place, slot, began_at, delivered, failed, dead)"
            f" VALUES ({subscription}, 7, 1, {now}, 1200, 34, 5), ({subscription}, 7, 2, {now}, 1, 0, 0)"
        )
    page = await (await sign_in("viewer")).text("/?range=day")
    figures = dict(re.findall(r"</i>([^<]+)</dt><dd>([^<]+)</dd>", page))
    assert figures == {"Delivered": "1\u202f201", "Failed attempts": "34", "Dead": "5"}
    assert "97.2 %" in page
    assert "Billing &lt;b&gt;" in page
    assert "https://down.example/hook" in page
    assert len(re.findall(r"<g class=\"delivered\"><rect", page)) == 1


async def test_the_part_that_is_polled_is_no_whole_page(sign_in: SignIn) -> None:
    visitor = await sign_in("viewer")
    part = await visitor.get("/overview/live?range=hour", **{"HX-Request": "true"})
    assert part.status_code == 200
    assert "<html" not in part.text
    assert "<svg" in part.text


async def test_an_empty_installation_has_an_overview_too(sign_in: SignIn) -> None:
    page = await (await sign_in("viewer")).text("/")
    assert "No attempt has failed lately." in page
