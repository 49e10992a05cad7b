"""What the API refuses a key, the console refuses too; and it shows no button for it."""

import re
from collections.abc import Iterator

import pytest

from tests.api.conftest import Served
from tests.console.conftest import SignIn
from tests.console.furnished import Furnished
from tests.console.pages import PARAMETER, pages
from tests.console.visitor import Visitor
from tidings.console.app import AREAS
from tidings.console.declaring import DeclaredRoute
from tidings.console.languages import WORDS
from tidings.model.key import COVERS, Scope

FORM = re.compile(r'<form[^>]*method="post"[^>]*action="([^"]+)"')
NAME = re.compile(rf">\s*(?:{'|'.join(path.stem for path in (WORDS / 'en').glob('*.toml'))})\.[a-z_.]+")
# Everybody may do these.
OPEN = {"/sign-out", "/language"}
# They lead whoever is signed in to another page.
LEADING_ON = ("/sign-in", "/tasks/find")


def routes(method: str) -> Iterator[DeclaredRoute]:
    for area in AREAS:
        yield from (route for route in area.routes if method in (route.methods or ()))


def beyond(scope: Scope, method: str) -> list[DeclaredRoute]:
    """What a key of this scope may not use."""
    return [route for route in routes(method) if route.declared.scope not in COVERS[scope]]


def filled(route: DeclaredRoute) -> str:
    """The path with something in the place of each parameter."""
    return PARAMETER.sub("1", route.path)


def test_there_is_something_to_refuse() -> None:
    assert len([*routes("POST")]) > 10
    for scope in (Scope.VIEWER, Scope.OPERATOR):
        assert beyond(scope, "POST")
        assert beyond(scope, "GET")
    assert any(route.declared.of_all_domains for route in routes("GET"))


@pytest.mark.parametrize("scope", [Scope.VIEWER, Scope.OPERATOR])
async def test_a_deed_beyond_a_key_is_refused(sign_in: SignIn, scope: Scope) -> None:
    visitor = await sign_in(scope)
    for route in beyond(scope, "POST"):
        assert (await visitor.post(filled(route))).status_code == 403, route.path


@pytest.mark.parametrize("scope", [Scope.VIEWER, Scope.OPERATOR])
async def test_a_page_beyond_a_key_is_refused(sign_in: SignIn, scope: Scope) -> None:
    visitor = await sign_in(scope)
    for route in beyond(scope, "GET"):
        assert (await visitor.get(filled(route))).status_code == 403, route.path


async def test_a_key_of_one_domain_meets_nothing_that_concerns_all(sign_in: SignIn) -> None:
    visitor = await sign_in("viewer", domain="billing")
    for route in routes("GET"):
        if route.declared.of_all_domains:
            assert (await visitor.get(filled(route))).status_code == 403, route.path
    assert (await visitor.get("/")).headers["location"] == "/events"


async def test_nobody_gets_anywhere_without_signing_in(visitor: Visitor) -> None:
    for route in [*routes("GET"), *routes("POST")]:
        method = "POST" if "POST" in (route.methods or ()) else "GET"
        response = await visitor.client.request(method, filled(route), headers={"Origin": visitor.url})
        assert response.status_code == 303, route.path
        assert response.headers["location"].startswith("/sign-in"), route.path


async def test_a_viewer_sees_every_page_in_both_languages_and_no_buttons(sign_in: SignIn, served: Served) -> None:
    await Furnished(served.database).ordinary()
    visitor = await sign_in("viewer")
    found = await pages(served.database)
    for path in (*LEADING_ON, *(route.path for route in beyond(Scope.VIEWER, "GET"))):
        found.pop(path, None)
    assert len(found) > 15
    for path, address in found.items():
        for language in ("en", "zh-TW"):
            response = await visitor.get(address, **{"Accept-Language": language})
            assert response.status_code == 200, path
            assert set(FORM.findall(response.text)) <= OPEN, path
            # A name of words for which there are none.
            assert NAME.findall(response.text) == [], path
