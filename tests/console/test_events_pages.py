"""Events in the console: found by what one knows of them, and each with its whole story."""

import html
import re
from typing import Any

import pytest

from tests.console.conftest import SignIn
from tests.console.deliveries import HOSTILE, QUOTED, Deliveries, ago
from tests.console.test_rights import FORM, OPEN
from tests.console.visitor import Visitor
from tests.support.busy_writers import busy_writers
from tests.support.database import Database
from tidings.console import events
from tidings.model.explanation import Explanation
from tidings.roles.observer import pages, searching
from tidings.roles.observer.why import why

NEXT = re.compile(r'rel="next" href="([^"]+)"')
LOOK_ON = re.compile(r'class="button primary" href="(/events\?[^"]*cursor=[^"]+)"')


def listed(text: str) -> list[int]:
    return [int(id) for id in re.findall(r'<td><a href="/events/(\d+)">', text)]


async def all_pages(visitor: Visitor, path: str) -> list[int]:
    """Also past pages on which nothing fits yet."""
    found: list[int] = []
    while True:
        text = await visitor.text(path)
        found += listed(text)
        following = NEXT.findall(text) or LOOK_ON.findall(text)
        if not following:
            return found
        path = html.unescape(following[0])


@pytest.fixture
async def world(engine: Database) -> Deliveries:
    return await Deliveries.of(engine)


# --- the list --------------------------------------------------------------------------------------------------------


async def test_the_newest_come_first_with_what_became_of_each(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(2)
    await world.publish()
    viewer = await sign_in("viewer")
    text = await viewer.text("/events")
    assert listed(text) == [3, 2, 1]
    rows = text.split("<tr>")[2:]
    assert "Not routed yet" in rows[0]
    assert "Delivered" in rows[1]
    assert "Dead" in rows[1]


async def test_an_event_that_nobody_was_to_get_says_so_in_the_list(world: Deliveries, sign_in: SignIn) -> None:
    await world.sql("UPDATE subscriptions SET active = false")
    await world.publish()
    await world.route()
    assert "Skipped" in await (await sign_in("viewer")).text("/events")


async def test_a_requeued_delivery_counts_by_its_last_generation(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    operator = await sign_in("operator")
    await operator.after("/dead-letters/1/requeue", event=1)
    row = (await operator.text("/events")).split("<tr>")[2]
    assert "Pending" in row
    assert "Dead" not in row


async def test_an_empty_log_says_what_to_do(sign_in: SignIn) -> None:
    assert "tidings publish" in await (await sign_in("viewer")).text("/events")


async def test_what_somebody_pasted_is_found_as_id_external_id_or_correlation_id(
    world: Deliveries, sign_in: SignIn
) -> None:
    (one,) = await world.events(1, external_id="'order 7'", correlation_id="'c-1'")
    (two,) = await world.events(1, external_id="'invoice-9'", event_domain="'shop'", correlation_id="'c-1'")
    (three,) = await world.events(1, external_id=f"'{one}'")
    viewer = await sign_in("viewer")

    async def leads_to(query: str) -> str | None:
        location: str | None = (await viewer.get(f"/events?{query}")).headers.get("location")
        return location

    assert await leads_to(f"q={two}") == f"/events/{two}"
    assert await leads_to(f"q=event:{two}") == f"/events/{two}"
    assert await leads_to("q=order+7") == f"/events/{one}"
    assert await leads_to("q=invoice-9") is None
    assert await leads_to("q=invoice-9&domain=shop") == f"/events/{two}"
    assert listed(await viewer.text("/events?q=c-1")) == [two, one]
    # A number may be an id and somebody's own name for another event.
    assert listed(await viewer.text(f"/events?q={one}")) == [one, three]
    assert "No event has this id" in await viewer.text("/events?q=nothing")
    # Of a number that is no event the page of that event says more.
    assert await leads_to("q=999999") == "/events/999999"


async def test_type_domain_and_time_can_be_combined(
    world: Deliveries, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 7)
    monkeypatch.setattr(searching, "MOST_LOOKS", 2)
    wanted: dict[str, list[int]] = {}
    for hours in (5, 4, 3, 2, 1):
        moment = f"'{ago(hours=hours)}'"
        for kind, domain in (("a.b", "default"), ("a.b", "shop"), ("c", "shop"), ("c", "default")):
            ids = await world.events(
                6, event_type=f"'{kind}'", event_domain=f"'{domain}'", created_at=moment, external_id="NULL"
            )
            wanted.setdefault(f"{kind} {domain} {hours}", []).extend(ids)
    viewer = await sign_in("viewer")

    def fitting(kind: str = "", domain: str = "", hours: tuple[int, ...] = (1, 2, 3, 4, 5)) -> list[int]:
        keys = [key.split() for key in wanted]
        chosen = [k for k in keys if kind in ("", k[0]) and domain in ("", k[1]) and int(k[2]) in hours]
        return sorted((id for key in chosen for id in wanted[" ".join(key)]), reverse=True)

    span = f"since={ago(hours=4.5)}&until={ago(hours=1.5)}"
    assert await all_pages(viewer, "/events?type=a.b") == fitting("a.b")
    assert await all_pages(viewer, "/events?domain=shop") == fitting(domain="shop")
    assert await all_pages(viewer, "/events?type=c&domain=shop") == fitting("c", "shop")
    assert await all_pages(viewer, f"/events?{span}") == fitting(hours=(2, 3, 4))
    assert await all_pages(viewer, f"/events?type=a.b&{span}") == fitting("a.b", hours=(2, 3, 4))
    assert await all_pages(viewer, f"/events?domain=shop&{span}") == fitting(domain="shop", hours=(2, 3, 4))
    assert await all_pages(viewer, f"/events?type=c&domain=shop&{span}") == fitting("c", "shop", (2, 3, 4))
    assert await all_pages(viewer, f"/events?type=c&since={ago(hours=2.5)}") == fitting("c", hours=(1, 2))
    assert await all_pages(viewer, f"/events?type=c&until={ago(hours=3.5)}") == fitting("c", hours=(4, 5))
    assert "No event fits" in await viewer.text(f"/events?type=none&{span}")


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "type=order.paid&since=2001-01-01T00:00"])
async def test_each_event_of_before_the_first_page_comes_once_while_others_write(
    world: Deliveries, sign_in: SignIn, query: str
) -> None:
    before = set(await world.events(180))
    viewer = await sign_in("viewer")
    async with busy_writers(world.database, "order.paid"):
        ids = await all_pages(viewer, f"/events?{query}")
    assert len(ids) == len(set(ids))
    assert before <= set(ids)


async def test_what_cannot_be_read_is_told_at_its_field_and_kept(sign_in: SignIn) -> None:
    viewer = await sign_in("viewer")
    for field, text in (("since", "yesterday"), ("q", "a%0Ab"), ("type", "x" * 400)):
        response = await viewer.get(f"/events?{field}={text}&domain=shop")
        assert response.status_code == 422, field
        assert f'id="{field}-note"' in response.text
        assert 'value="shop"' in response.text


async def test_whatever_is_typed_is_answered(world: Deliveries, sign_in: SignIn) -> None:
    await world.events(1)
    viewer = await sign_in("viewer")
    for query in (
        "q=%E4%B8%AD",
        "type=%E4%B8%AD",
        "domain=%E4%B8%AD",
        "type=%F0%9F%98%80&since=2026-01-01T00:00",
        "q=99999999999999999999999999",
        f"q={'1':0>20}{'9' * 30}",
        "q=0",
        "q=%27%20OR%201=1",
        "since=9998-12-31T23:59:59&type=a",
        "until=1971-01-01T00:00&type=a",
        "until=0001-01-01T00:00",
        "since=2026-01-01T00:00%2B14:00&domain=a",
    ):
        response = await viewer.get(f"/events?{query}")
        assert response.status_code in (200, 422), query
        assert listed(response.text) == [], query


# --- one event -------------------------------------------------------------------------------------------------------


async def test_one_page_tells_the_whole_story_in_its_order(world: Deliveries, sign_in: SignIn) -> None:
    """Accepted, routed, tried, given up, requeued by somebody, and the new generation."""
    await world.deliver(1)
    operator = await sign_in("operator")
    assert "It was requeued." in await operator.after("/dead-letters/1/requeue", event=1)
    text, place = await operator.text("/events/1?subscription=2"), 0
    line = text[text.index('<ol class="story">') :]
    for word in (
        "Accepted",
        "Routed to 2",
        "by route 1, router default",
        "To be delivered",
        "Attempt 1",
        "503",
        "http_503",
        "123 ms",
        "worker-7",
        "What the endpoint answered",
        "no room",
        "Given up",
        "Dead letter 1",
        "Requeued, generation 1",
        "by key:",
        "The next attempt waits for its turn",
    ):
        place = line.index(word, place)
    assert "204" in await operator.text("/events/1?subscription=1")


async def test_the_story_can_be_that_of_one_subscription(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    viewer = await sign_in("viewer")
    good = await viewer.text("/events/1?subscription=1")
    assert "Given up" not in good[good.index('<ol class="story">') :]
    assert "Given up" in await viewer.text("/events/1?subscription=2")


async def test_the_answer_of_why_is_that_of_the_command_line(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    await world.publish()
    viewer = await sign_in("viewer")
    engine = await world.database.open("observer")
    for id in (1, 2):
        answer = await why(engine, f"event:{id}", 16)
        text = html.unescape(await viewer.text(f"/events/{id}"))
        assert answer.headline in text
        for reason in (*answer.reasons, *(reason for part in answer.parts for reason in part.reasons)):
            assert reason.text in text


async def test_the_answer_of_why_is_in_the_language_of_the_page(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    await world.publish()
    viewer = await sign_in("viewer")
    for id, headline in ((1, "2 個投遞都已結束。"), (2, "尚未路由。")):
        text = (await viewer.get(f"/events/{id}", **{"Accept-Language": "zh-TW"})).text
        answers = re.findall(r'<div class="why.*?</div>', text, re.DOTALL)
        assert headline in answers[0]
        # Commands stay what they are; nothing else is English.
        said = re.sub(r"<code>.*?</code>|<[^>]*>", " ", " ".join(answers))
        assert not re.search(r"[A-Za-z]+ [a-z]+ [a-z]+", said), said
    missing = await viewer.get("/events/4711", **{"Accept-Language": "zh-TW"})
    assert "還沒有人以此編號提交事件" in missing.text


async def test_why_it_was_not_routed_stands_in_the_story(world: Deliveries, sign_in: SignIn) -> None:
    await world.sql("DELETE FROM routes")
    await world.publish()
    await world.route()
    text = await (await sign_in("viewer")).text("/events/1")
    assert "Nobody was to get it" in text
    assert "No route matched it." in text


async def test_an_event_that_is_not_there_is_explained(sign_in: SignIn) -> None:
    viewer = await sign_in("viewer")
    response = await viewer.get("/events/4711")
    assert response.status_code == 404
    assert "nobody has committed one under this number" in response.text
    for id in ("0", "99999999999999999999"):
        assert (await viewer.get(f"/events/{id}")).status_code == 404


async def test_a_page_looks_again_until_nothing_more_will_happen(world: Deliveries, sign_in: SignIn) -> None:
    await world.publish()
    viewer = await sign_in("viewer")
    assert 'hx-get="/events/1/live"' in await viewer.text("/events/1")
    response = await viewer.get("/events/1/live", **{"HX-Request": "true"})
    assert response.status_code == 200
    assert "<html" not in response.text
    await world.deliver(0)
    assert (await viewer.get("/events/1/live", **{"HX-Request": "true"})).status_code == 286
    assert "hx-get" not in await viewer.text("/events/1")


async def test_a_page_looks_again_as_long_as_it_shows_something_unfinished(
    world: Deliveries, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page is made of is read in several statements, and things happen between them."""
    await world.deliver(1)
    operator = await sign_in("operator")
    saga = await world.value("SELECT id FROM webhook_delivery_sagas WHERE status = 'Completed'")

    async def then_somebody_resends(*asked: Any) -> Explanation:
        answer = await why(*asked)
        await operator.post(f"/sagas/{saga}/resend")
        return answer

    monkeypatch.setattr(events, "why", then_somebody_resends)
    response = await operator.get("/events/1/live", **{"HX-Request": "true"})
    assert "Pending" in response.text
    assert response.status_code == 200
    assert 'hx-get="/events/1/live"' in await operator.text("/events/1")


async def test_a_payload_is_laid_out_or_as_written_or_a_file(world: Deliveries, sign_in: SignIn) -> None:
    payload = '{"n":1e400,"n":[1.50,{}]}'
    await world.events(1, payload=f"'{payload}'")
    viewer = await sign_in("viewer")
    assert '{\n  "n": 1e400,\n  "n": [\n    1.50,\n    {}\n  ]\n}' in html.unescape(await viewer.text("/events/1"))
    assert payload in html.unescape(await viewer.text("/events/1?view=raw"))
    file = await viewer.get("/events/1/payload")
    assert file.text == payload
    assert file.headers["content-disposition"] == 'attachment; filename="event-1.json"'
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.headers["content-type"] == "application/json"
    assert (await viewer.get("/events/2/payload")).status_code == 404


async def test_a_long_payload_is_cut_and_the_file_is_whole(world: Deliveries, sign_in: SignIn) -> None:
    payload = f'"{"x" * 200_000}"'
    await world.events(1, payload=f"'{payload}'")
    viewer = await sign_in("viewer")
    text = await viewer.text("/events/1")
    assert len(text) < 100_000
    assert "only the beginning is shown" in text
    assert (await viewer.get("/events/1/payload")).text == payload


async def test_what_is_foreign_is_text(world: Deliveries, sign_in: SignIn) -> None:
    await world.sql(f"UPDATE subscriptions SET description = '{QUOTED}'")
    value = QUOTED.replace('"', '\\\\"' if world.database.family == "mysql" else '\\"')
    await world.events(1, external_id=f"'{QUOTED}'", payload=f"""'{{"a": "{value}"}}'""")
    await world.deliver(0)
    admin = await sign_in()
    for path in ("/events", "/events/1", "/events/1?view=raw", "/events/1/live", f"/events?type={HOSTILE}"):
        response = await admin.get(path)
        assert "<script>alert" not in response.text, path
        assert "<img src=x" not in response.text, path
        assert 'onmouseover="alert' not in response.text, path
    assert "&lt;script&gt;alert(1)" in await admin.text("/events/1")


async def test_a_delivered_event_is_sent_again_once(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    operator = await sign_in("operator")
    saga = await world.value("SELECT id FROM webhook_delivery_sagas WHERE status = 'Completed'")
    assert "It was requeued." in await operator.after(f"/sagas/{saga}/resend", event=1)
    assert "had been requeued before" in await operator.after(f"/sagas/{saga}/resend", event=1)
    assert await world.value("SELECT COUNT(*) FROM webhook_delivery_sagas WHERE generation = 1") == 1
    assert "Sent again, generation 1" in await operator.text("/events/1")
    assert (await operator.post("/sagas/999/resend")).status_code == 404


async def test_a_resend_that_is_refused_does_not_look_as_if_it_were_done(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    await world.sql("UPDATE subscriptions SET active = false")
    saga = await world.value("SELECT id FROM webhook_delivery_sagas WHERE status = 'Completed'")
    text = await (await sign_in("operator")).after(f"/sagas/{saga}/resend", event=1)
    assert 'class="flash bad" role="status">Refused: its subscription is not active.' in text


async def test_a_viewer_sees_the_story_and_no_buttons(world: Deliveries, sign_in: SignIn) -> None:
    await world.deliver(1)
    viewer = await sign_in("viewer")
    assert set(FORM.findall(await viewer.text("/events/1"))) <= OPEN
    assert (await viewer.post("/sagas/1/resend")).status_code == 403
    assert set(FORM.findall(await (await sign_in("operator")).text("/events/1"))) > OPEN


async def test_a_key_of_one_domain_sees_its_own_events_only(world: Deliveries, sign_in: SignIn) -> None:
    (own,) = await world.events(1, event_domain="'shop'", external_id="'x'", correlation_id="'c'")
    (other,) = await world.events(1, external_id="'x'", correlation_id="'c'")
    shop = await sign_in("viewer", domain="shop")
    assert listed(await shop.text("/events")) == [own]
    assert listed(await shop.text("/events?domain=default")) == [own]
    assert listed(await shop.text(f"/events?since={ago(hours=1)}")) == [own]
    assert (await shop.get("/events?q=x")).headers["location"] == f"/events/{own}"
    assert (await shop.get("/events?q=c")).headers["location"] == f"/events/{own}"
    assert (await shop.get(f"/events/{own}")).status_code == 200
    for path in ("", "/live", "/payload"):
        theirs, nobodys = await shop.get(f"/events/{other}{path}"), await shop.get(f"/events/4711{path}")
        assert theirs.status_code == nobodys.status_code == 404
        assert "order.paid" not in theirs.text
