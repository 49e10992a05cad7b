"""No other site can act in somebody's name, and no page can be framed, sniffed or made to run foreign script."""

import base64

import pytest

from tests.api.conftest import Served
from tests.console.conftest import SignIn
from tests.console.visitor import Visitor
from tidings.console.cookies import Flash, flash_text, read_flash

FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_a_form_from_another_site_is_refused_even_with_the_right_token(
    sign_in: SignIn, headers: dict[str, str]
) -> None:
    visitor = await sign_in("admin")
    response = await visitor.post("/sign-out", headers)
    assert response.status_code == 403
    assert (await visitor.get("/events")).status_code == 200


async def test_a_form_with_a_foreign_site_and_our_origin_is_refused(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("admin")
    headers = {"Origin": served.url, "Sec-Fetch-Site": "cross-site"}
    assert (await visitor.post("/sign-out", headers)).status_code == 403


@pytest.mark.parametrize("token", ["", "0" * 64, "not a token", "\u2603"])
async def test_a_form_without_the_right_token_is_refused(sign_in: SignIn, token: str) -> None:
    visitor = await sign_in("admin")
    visitor.token = token
    assert (await visitor.post("/sign-out")).status_code == 403
    assert (await visitor.get("/events")).status_code == 200


async def test_the_token_of_one_session_is_nothing_in_another(sign_in: SignIn) -> None:
    one, other = await sign_in("admin"), await sign_in("admin")
    one.token = other.token
    assert (await one.post("/sign-out")).status_code == 403


async def test_a_form_can_be_sent_by_htmx_with_the_token_as_header(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("admin")
    token, visitor.token = visitor.token, ""
    assert (await visitor.post("/sign-out", {"Origin": served.url, "X-CSRF-Token": token})).status_code == 303


async def test_nobody_is_signed_in_by_another_site(visitor: Visitor, served: Served) -> None:
    await visitor.get("/sign-in")
    key = served.keys["viewer"]
    assert (await visitor.post("/sign-in", {"Origin": "https://evil.example"}, key=key)).status_code == 403
    visitor.token = ""
    assert (await visitor.post("/sign-in", key=key)).status_code == 403


async def test_json_is_no_form(sign_in: SignIn, served: Served) -> None:
    visitor = await sign_in("admin")
    response = await visitor.client.post("/sign-out", json={"csrf": visitor.token}, headers={"Origin": served.url})
    assert response.status_code == 415


@pytest.mark.parametrize("path", ["/sign-in", "/", "/events", "/nothing-here", "/assets/console.css"])
async def test_every_answer_forbids_what_pages_do_not_need(sign_in: SignIn, path: str) -> None:
    headers = (await (await sign_in("admin")).get(path)).headers
    policy = dict(rule.strip().split(" ", 1) for rule in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert headers.get_list("content-security-policy") == [headers["content-security-policy"]]


async def test_pages_are_kept_nowhere_and_files_for_long(sign_in: SignIn) -> None:
    visitor = await sign_in("admin")
    assert (await visitor.get("/events")).headers["cache-control"] == "no-store"
    assert "immutable" in (await visitor.get("/assets/console.css")).headers["cache-control"]


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "secret", "console.css/x", ".", "%00"])
async def test_only_the_files_of_the_console_are_served(visitor: Visitor, name: str) -> None:
    assert (await visitor.get(f"/assets/{name}")).status_code == 404


@pytest.mark.parametrize("said", ["", "null", "{}", '["", true]', '["a"]', "[" * 3000, "7", "no JSON"])
def test_a_sentence_that_somebody_else_put_into_a_cookie_is_not_said(said: str) -> None:
    assert read_flash(base64.urlsafe_b64encode(said.encode()).decode()) is None


def test_a_sentence_of_ours_is_said_and_nothing_that_is_not_even_base64() -> None:
    assert read_flash(flash_text(Flash("Done.", False))) == Flash("Done.", False)
    assert [read_flash(text) for text in ("é", "x", "%%%")] == [None] * 3


async def test_what_is_not_there_is_a_page_for_people_and_a_document_for_programs(visitor: Visitor) -> None:
    page = await visitor.get("/nothing-here")
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    document = await visitor.get("/nothing-here", Accept="*/*")
    assert document.headers["content-type"] == "application/problem+json"
    assert document.json()["code"] == "not_found"


async def test_a_query_that_can_t_be_read_is_refused_on_a_page(sign_in: SignIn) -> None:
    response = await (await sign_in("viewer")).get(f"/events?{'a&' * 2001}")
    assert response.status_code == 400
    assert "This form can&#39;t be read." in response.text


async def test_a_number_of_any_length_is_at_most_the_id_of_nothing(visitor: Visitor, sign_in: SignIn) -> None:
    assert (await visitor.get(f"/events/{'9' * 5000}")).status_code == 404
    viewer = await sign_in("viewer")
    for digits in (19, 5000):
        assert (await viewer.get(f"/events/{'9' * digits}")).status_code == 404


async def test_the_language_is_chosen_by_the_browser_and_switched_by_a_cookie(sign_in: SignIn) -> None:
    visitor = await sign_in("viewer")
    assert '<html lang="en">' in await visitor.text("/events")
    assert '<html lang="zh-Hant">' in (await visitor.get("/events", **{"Accept-Language": "zh-TW"})).text
    assert '<html lang="zh-Hant">' in await visitor.after("/language", language="zh-Hant", to="/events")
    assert '<html lang="zh-Hant">' in await visitor.text("/events")
    assert '<html lang="en">' in await visitor.after("/language", language="en", to="/events")
