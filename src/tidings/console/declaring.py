"""How a route of the console is declared: who may go there; and what is looked at before its handler is."""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route

from tidings.api.context import refuse_unless
from tidings.api.problems import Refused
from tidings.console import cookies
from tidings.console.forgery import FIELD, HEADER, refuse_foreign
from tidings.console.forms import read_form
from tidings.console.page import Page
from tidings.model.key import Scope
from tidings.roles.sessions.keeping import look_up

ROLE = "session_keeper"
SIGN_IN = "/sign-in"
Handler = Callable[[Page], Awaitable[Response]]
Answer = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Declared:
    """Who may use a route."""

    scope: Scope
    of_all_domains: bool
    polled: bool = False


class DeclaredRoute(Route):
    def __init__(self, path: str, answer: Answer, method: str, declared: Declared) -> None:
        super().__init__(path, answer, methods=[method])
        self.declared = declared

    def matches(self, scope: MutableMapping[str, Any]) -> tuple[Match, MutableMapping[str, Any]]:
        """A number with more digits than Python reads is an id of nothing."""
        try:
            return super().matches(scope)
        except ValueError:
            return Match.NONE, {}


def get(
    path: str,
    handler: Handler,
    scope: Scope = Scope.VIEWER,
    *,
    of_all_domains: bool = False,
    polled: bool = False,
) -> DeclaredRoute:
    """`of_all_domains`: not for keys that are bound to one. `polled`: pages ask by themselves; it keeps nobody in."""

    async def answer(request: Request) -> Response:
        page = await _signed_in(request, is_used=not polled)
        if page is None:
            return _to_sign_in(request)
        _refuse_unless_allowed(page, scope, of_all_domains)
        return await handler(page)

    return DeclaredRoute(path, answer, "GET", Declared(scope, of_all_domains, polled))


def post(path: str, handler: Handler, scope: Scope, *, of_all_domains: bool = True) -> DeclaredRoute:
    """A deed. Its form has the token that `ui.csrf()` writes."""

    async def answer(request: Request) -> Response:
        page = await _signed_in(request, is_used=True)
        if page is None:
            return _to_sign_in(request)
        await take_form(page)
        _refuse_unless_allowed(page, scope, of_all_domains)
        return await handler(page)

    return DeclaredRoute(path, answer, "POST", Declared(scope, of_all_domains))


async def take_form(page: Page) -> None:
    """What was sent, if it was sent by a page of ours."""
    page.form = read_form(await page.request.body())
    given = page.form[FIELD] or page.request.headers.get(HEADER, "")
    refuse_foreign(page.request, page.secret, given)


async def person(request: Request) -> Page:
    """A page for whoever asks: signed in or not."""
    return await _signed_in(request, is_used=False) or Page(request, secret=cookies.cookie(request, cookies.VISIT))


async def _signed_in(request: Request, *, is_used: bool) -> Page | None:
    id = cookies.cookie(request, cookies.SESSION)
    page = Page(request, secret=id)
    found = await page.api.as_role(ROLE, lambda engine: look_up(engine, id, is_used=is_used)) if id else None
    if found is None:
        return None
    page.caller, page.key_name = found.caller, found.key_name
    # What this person is refused is written down by the front.
    request.scope["tidings.caller"] = found.caller
    return page


def _refuse_unless_allowed(page: Page, scope: Scope, of_all_domains: bool) -> None:
    refuse_unless(page.who, scope)
    if of_all_domains and page.own:
        raise Refused("forbidden", "This concerns all domains, and this key is bound to one.")


def _to_sign_in(request: Request) -> Response:
    page = Page(request)
    if page.is_partial:
        return Response(headers={"HX-Redirect": SIGN_IN})
    where = page.address() if request.method == "GET" else ""
    return RedirectResponse(SIGN_IN if where in ("", "/") else f"{SIGN_IN}?{urlencode({'to': where})}", 303)
