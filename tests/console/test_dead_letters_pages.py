"""Dead letters in the console: found, looked at, and sent again: one, some that were ticked, or all that fit."""

import html
import re

import pytest

from tests.console.conftest import SignIn
from tests.console.deliveries import QUOTED
from tests.console.test_rights import FORM, OPEN
from tests.console.visitor import Visitor
from tests.roles.dead_letters.scene import Scene
from tests.support.database import Database
from tests.support.waiting import eventually
from tidings.roles.observer import letters as letters_module
from tidings.roles.observer import pages

FLASH_BAD = 'class="flash bad"'


def listed(text: str) -> list[int]:
    return [int(id) for id in re.findall(r'<td><a href="/dead-letters/(\d+)">', text)]


async def all_pages(visitor: Visitor, path: str) -> list[int]:
    found: list[int] = []
    while path:
        text = await visitor.text(path)
        found += listed(text)
        following = re.findall(r'href="(/dead-letters[^"]*cursor=[^"]+)"', text)
        goes_on = 'rel="next"' in text or "Look on" in text
        path = html.unescape(following[-1]) if goes_on else ""
    return found


@pytest.fixture
async def scene(engine: Database) -> Scene:
    return Scene(engine, await engine.open("dead_letter_operator"))


# --- looking ---------------------------------------------------------------------------------------------------------


async def test_they_are_found_by_subscription_type_error_and_time(
    scene: Scene, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "WINDOW", 5)
    one, two = await scene.subscription(), await scene.subscription()
    first = await scene.letters(one, 4, "http_503", "2026-01-10")
    second = await scene.letters(two, 4, "timeout", "2026-01-20")
    third = await scene.letters(two, 4, "http_503", "2026-01-30")
    (last,) = await scene.letters(one, 1, "http_503", "2026-02-01")
    viewer = await sign_in("viewer")
    everything = sorted([*first, *second, *third, last], reverse=True)
    assert await all_pages(viewer, "/dead-letters") == everything

    async def found(query: str) -> list[int]:
        return sorted(await all_pages(viewer, f"/dead-letters?{query}"))

    assert await found(f"subscription={two}") == [*second, *third]
    assert await found("error=timeout") == second
    assert await found(f"subscription={two}&error=http_503") == third
    assert await found("type=a") == sorted(everything)
    assert await found("type=b") == []
    assert await found("since=2026-01-15T00:00&until=2026-01-25T00:00") == second
    assert await found(f"subscription={one}&since=2026-01-15T00:00") == [last]
    assert await found("error=none") == []
    assert "No dead letter fits" in await viewer.text("/dead-letters?subscription=999")
    assert (await viewer.get("/dead-letters?subscription=abc")).status_code == 422
    assert (await viewer.get("/dead-letters?since=abc")).status_code == 422


async def test_one_is_shown_with_its_error_and_payload_and_leads_to_its_event(scene: Scene, sign_in: SignIn) -> None:
    (letter,) = await scene.letters(await scene.subscription(), 1, "http_503")
    viewer = await sign_in("viewer")
    text = await viewer.text(f"/dead-letters/{letter}")
    assert "http_503" in text
    assert '/events/1?subscription=1"' in text
    assert '"a": 1' in html.unescape(text)
    assert '{"a":  1}' in html.unescape(await viewer.text(f"/dead-letters/{letter}?view=raw"))
    assert (await viewer.get("/dead-letters/999")).status_code == 404


async def test_nothing_given_up_is_good_news(sign_in: SignIn) -> None:
    assert "Nothing was given up" in await (await sign_in("viewer")).text("/dead-letters")


async def test_a_viewer_sees_no_buttons_and_is_refused(scene: Scene, sign_in: SignIn) -> None:
    (letter,) = await scene.letters(await scene.subscription())
    viewer = await sign_in("viewer")
    for path in ("/dead-letters", f"/dead-letters/{letter}", "/dead-letters/requeues"):
        text = await viewer.text(path)
        assert set(FORM.findall(text)) <= OPEN, path
        assert 'type="checkbox"' not in text
    for path in (f"/{letter}/requeue", "/requeue", "/many", "/requeues/1/cancel", "/requeues/1/resume"):
        assert (await viewer.post(f"/dead-letters{path}", ids=[letter], sure="yes")).status_code == 403, path
    assert (await viewer.get("/dead-letters/many")).status_code == 403
    assert await scene.next_generation() == []


async def test_a_key_of_one_domain_sees_its_own_and_requeues_nothing(scene: Scene, sign_in: SignIn) -> None:
    (other,) = await scene.letters(await scene.subscription())
    await scene.sql("INSERT INTO events (event_domain, event_type, payload) VALUES ('shop', 'a', '{}')")
    await scene.sql(
        "INSERT INTO webhook_delivery_sagas (event_id, subscription_id, correlation_id, status)"
        " SELECT id, 1, correlation_id, 'DeadLettered' FROM events WHERE event_domain = 'shop'"
    )
    await scene.sql(
        "INSERT INTO dead_letters (saga_id, event_id, subscription_id, payload_snapshot)"
        " SELECT s.id, s.event_id, 1, '{}' FROM webhook_delivery_sagas s JOIN events e ON e.id = s.event_id"
        " WHERE e.event_domain = 'shop'"
    )
    own = other + 1
    shop = await sign_in("viewer", domain="shop")
    assert listed(await shop.text("/dead-letters")) == [own]
    assert "The whole story" in await shop.text(f"/dead-letters/{own}")
    assert (await shop.get(f"/dead-letters/{other}")).status_code == 404
    assert (await shop.post(f"/dead-letters/{own}/requeue")).status_code == 403
    assert (await shop.get(f"/dead-letters/results?ids={other}")).status_code == 403


async def test_what_is_foreign_is_text(scene: Scene, sign_in: SignIn) -> None:
    subscription = await scene.subscription(description=f"'{QUOTED}'")
    (letter,) = await scene.letters(subscription, 1, QUOTED[:60].replace("'", ""))
    admin = await sign_in()
    for path in (
        "/dead-letters",
        f"/dead-letters/{letter}",
        f"/dead-letters/results?ids={letter}",
        "/dead-letters?error=<script>alert(1)</script>",
        "/dead-letters/many?error=<script>alert(1)</script>",
        "/dead-letters?subscription=<script>alert(1)</script>",
    ):
        response = await admin.get(path)
        assert response.status_code in (200, 422), path
        assert "<script>alert" not in response.text, path
        assert "<img src=x" not in response.text, path


# --- sending again ---------------------------------------------------------------------------------------------------


async def test_one_is_requeued_once(scene: Scene, sign_in: SignIn) -> None:
    (letter,) = await scene.letters(await scene.subscription())
    operator = await sign_in("operator")
    text = await operator.after(f"/dead-letters/{letter}/requeue")
    assert "It was requeued." in text
    assert "Pending" in text
    assert f'action="/dead-letters/{letter}/requeue"' not in text
    assert "had been requeued before" in await operator.after(f"/dead-letters/{letter}/requeue")
    assert len(await scene.next_generation()) == 1
    actors = [actor for actor, action, _ in await scene.audited() if action == "dead_letters.requeued"]
    assert actors[0].startswith("key:")
    assert (await operator.post("/dead-letters/999/requeue")).status_code == 404


async def test_one_of_an_inactive_subscription_is_refused_in_words(scene: Scene, sign_in: SignIn) -> None:
    (letter,) = await scene.letters(await scene.subscription(active=False))
    text = await (await sign_in("operator")).after(f"/dead-letters/{letter}/requeue")
    assert "Refused: its subscription is not active." in text
    assert FLASH_BAD in text
    assert await scene.next_generation() == []


async def test_those_that_were_ticked_are_asked_about_then_requeued_then_listed(scene: Scene, sign_in: SignIn) -> None:
    good = await scene.letters(await scene.subscription(), 3)
    (unverified,) = await scene.letters(await scene.subscription(verified=False))
    operator = await sign_in("operator")
    await operator.text("/dead-letters")
    ids = [*good[:2], unverified]
    question = await operator.post("/dead-letters/requeue", ids=ids)
    assert question.status_code == 200
    assert "Requeue 3 dead letters?" in question.text
    assert "Its subscription is not verified" in question.text
    assert await scene.next_generation() == []
    text = await operator.after("/dead-letters/requeue", ids=ids, sure="yes")
    assert "2 requeued, 0 had been before, 1 refused." in text
    assert sorted(listed(text)) == sorted(ids)
    assert len(await scene.next_generation()) == 2
    live = await operator.get(f"/dead-letters/results/live?ids={','.join(map(str, ids))}")
    assert live.status_code == 200
    await scene.sql("UPDATE webhook_delivery_sagas SET status = 'InProgress' WHERE generation = 1")
    await scene.sql("UPDATE webhook_delivery_sagas SET status = 'Completed' WHERE generation = 1")
    live = await operator.get(f"/dead-letters/results/live?ids={','.join(map(str, ids))}")
    assert live.status_code == 286
    assert "Delivered" in live.text


async def test_if_all_that_were_ticked_are_refused_it_does_not_look_as_if_it_were_done(
    scene: Scene, sign_in: SignIn
) -> None:
    ids = await scene.letters(await scene.subscription(active=False), 2)
    text = await (await sign_in("operator")).after("/dead-letters/requeue", ids=ids, sure="yes")
    assert f'{FLASH_BAD} role="status">0 requeued, 0 had been before, 2 refused.' in text


async def test_nothing_ticked_is_said(sign_in: SignIn) -> None:
    operator = await sign_in("operator")
    for ids in ([], ["x"], ["0", "-1", "9" * 30]):
        assert "Tick the dead letters" in await operator.after("/dead-letters/requeue", ids=ids, sure="yes")


async def test_many_are_previewed_begun_and_followed_to_their_end(scene: Scene, sign_in: SignIn) -> None:
    good, bad = await scene.subscription(), await scene.subscription(active=False)
    wanted = await scene.letters(good, 12, "http_503")
    await scene.letters(bad, 3, "http_503")
    await scene.letters(good, 5, "timeout")
    operator = await sign_in("operator")
    preview = await operator.text("/dead-letters/many?error=http_503")
    assert "15 dead letters" in preview
    assert "3 dead letters · Its subscription is inactive" in preview
    assert await scene.next_generation() == []
    text = await operator.after("/dead-letters/many", error="http_503", rate="10000")
    assert "The requeue has begun." in text

    async def is_over() -> bool:
        answer = await operator.get("/dead-letters/requeues/1/live")
        return bool(answer.headers.get("hx-refresh") == "true")

    await eventually(is_over, what="the requeue to be done")
    text = await operator.text("/dead-letters/requeues/1")
    assert "15 of 15" in text
    assert "Done" in text
    assert set(wanted) <= set(listed(text))
    assert "Its subscription is inactive" in text
    assert len(await scene.next_generation()) == 12
    assert "/dead-letters/requeues/1" in await operator.text("/dead-letters/requeues")


async def test_many_can_be_of_one_type(scene: Scene, sign_in: SignIn) -> None:
    subscription = await scene.subscription()
    await scene.letters(subscription, 3)
    operator = await sign_in("operator")
    assert "3 dead letters" in await operator.text("/dead-letters/many?type=a")
    assert "0 dead letters" in await operator.text("/dead-letters/many?type=b")
    await operator.after("/dead-letters/many", type="b", rate="10000")
    assert "0 of 0" in await operator.text("/dead-letters/requeues/1")
    await operator.after("/dead-letters/many", type="a", rate="10000")

    async def are_there() -> bool:
        return len(await scene.next_generation()) == 3

    await eventually(are_there, what="three of the type")


async def test_a_count_ends_where_counting_gets_long(
    scene: Scene, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.letters(await scene.subscription(), 1001)
    operator = await sign_in("operator")
    assert "1\u202f000+ dead letters" in await operator.text("/dead-letters/many")
    assert "There is no filter" in await operator.text("/dead-letters/many")
    monkeypatch.setattr(letters_module, "WINDOW", 10)
    text = await operator.text("/dead-letters/many?error=timeout&until=2027-01-01T00:00")
    assert "10 dead letters" in text
    assert "older ones were not looked through" in text


async def test_many_that_are_cancelled_are_not_resumed(scene: Scene, sign_in: SignIn) -> None:
    """At one a second they would take a minute."""
    await scene.letters(await scene.subscription(), 60)
    operator = await sign_in("operator")
    await operator.after("/dead-letters/many", rate="1")

    async def has_begun() -> bool:
        return len(await scene.next_generation()) > 0

    await eventually(has_begun, what="the first of them")
    text = await operator.text("/dead-letters/requeues/1")
    assert 'hx-get="/dead-letters/requeues/1/live"' in text
    assert 'action="/dead-letters/requeues/1/cancel"' in text
    assert "It was ended." in await operator.after("/dead-letters/requeues/1/cancel")
    done = len(await scene.next_generation())
    assert done < 60
    text = await operator.text("/dead-letters/requeues/1")
    assert "Cancelled" in text
    assert "hx-get" not in text
    await operator.after("/dead-letters/requeues/1/resume")
    assert len(await scene.next_generation()) == done
    assert (await operator.post("/dead-letters/requeues/99/cancel")).status_code == 404
    assert (await operator.get("/dead-letters/requeues/99")).status_code == 404


async def test_one_that_stands_still_can_be_resumed(scene: Scene, engine: Database, sign_in: SignIn) -> None:
    await scene.letters(await scene.subscription(), 4)
    await engine.sql(
        "INSERT INTO mass_requeues (filter, rate, requested_by, total, last_id, updated_at) VALUES"
        ' (\'{"since": "1970-01-02T00:00:00+00:00", "until": "9999-01-01T00:00:00+00:00", "subscription_id": 0,'
        " \"error_code\": \"\"}', 10000, 'somebody', 4, 4, '2026-01-01')"
    )
    operator = await sign_in("operator")
    text = await operator.text("/dead-letters/requeues/1")
    assert "It has not gone on for a while" in text
    assert "It goes on." in await operator.after("/dead-letters/requeues/1/resume")

    async def are_there() -> bool:
        return len(await scene.next_generation()) == 4

    await eventually(are_there, what="all four")


async def test_a_rate_that_is_none_is_told_at_its_field(scene: Scene, sign_in: SignIn) -> None:
    await scene.letters(await scene.subscription())
    operator = await sign_in("operator")
    for rate in ("0", "10001", "fast", ""):
        response = await operator.post("/dead-letters/many", error="timeout", rate=rate)
        assert response.status_code == 422, rate
        assert 'id="rate-note"' in response.text
        assert 'name="error" value="timeout"' in response.text
    assert await scene.all("mass_requeues") == []
