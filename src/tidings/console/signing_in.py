"""Signing in with an API key, signing out, and the choice of a language."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tidings.api.throttle import name_of
from tidings.console import cookies
from tidings.console.declaring import ROLE, SIGN_IN, person, take_form
from tidings.console.languages import LANGUAGES
from tidings.console.page import Page
from tidings.console.saying import translated
from tidings.decisions.keys import may_be_guessed, what_is_wrong
from tidings.model.key import Caller, Scope
from tidings.roles.sessions.keeping import begin, end


async def ask(request: Request) -> Response:
    page = await person(request)
    if page.caller is not None:
        return RedirectResponse("/", 303)
    return _form(page)


async def sign_in(request: Request) -> Response:
    """The key is looked at once; from then on the cookie says who it is."""
    page = Page(request, secret=cookies.cookie(request, cookies.VISIT))
    await take_form(page)
    key, throttle = page.form.text("key"), page.api.throttle
    name = name_of(request.client.host if request.client else "")
    held, caller = throttle.holds(name), None
    # From where too many were wrong lately, one that could have been guessed is not looked at.
    if not (held and may_be_guessed(key)):
        caller = await page.api.checker.caller(key)
    if caller is None:
        throttle.failed(name)
        wrong = page.words("sign_in.too_often") if held else translated(page.words, "wrong_key", what_is_wrong(key))
        return _form(page, wrong, status=429 if held else 401)
    if not caller.may(Scope.VIEWER):
        return _form(page, page.words("sign_in.only_publishes"), status=403)
    return await _let_in(page, caller)


async def sign_out(request: Request) -> Response:
    page = await person(request)
    if page.caller is not None:
        await take_form(page)
        caller, id = page.caller, page.secret
        await page.api.as_role(ROLE, lambda engine: end(engine, id, caller))
    response = RedirectResponse(SIGN_IN, 303)
    cookies.drop(request, response, cookies.SESSION)
    return response


async def choose_language(request: Request) -> Response:
    page = await person(request)
    await take_form(page)
    response = RedirectResponse(_own_path(page.form["to"]), 303)
    if page.form["language"] in LANGUAGES:
        cookies.keep(request, response, cookies.LANGUAGE, page.form["language"])
    return response


async def _let_in(page: Page, caller: Caller) -> Response:
    """With a new id, whatever the browser had before."""
    former = cookies.cookie(page.request, cookies.SESSION)
    id = await page.api.as_role(ROLE, lambda engine: begin(engine, caller, former))
    response = RedirectResponse(_own_path(page.form["to"]), 303)
    cookies.keep(page.request, response, cookies.SESSION, id)
    cookies.drop(page.request, response, cookies.VISIT)
    return response


def _form(page: Page, wrong: str = "", status: int = 200) -> Response:
    is_new = not page.secret
    if is_new:
        page.secret = cookies.new_visit()
    to = _own_path(page.form["to"] or page.query["to"])
    response = page.show("sign_in.html", status, wrong=wrong, to=to)
    if is_new:
        cookies.keep(page.request, response, cookies.VISIT, page.secret)
    return response


def _own_path(to: str) -> str:
    """Where to go after this; never to somebody else's site."""
    is_own = to.startswith("/") and not to.startswith("//") and "\\" not in to and to.isprintable() and len(to) < 2000
    return to if is_own else "/"


routes = [
    Route(SIGN_IN, ask, methods=["GET"]),
    Route(SIGN_IN, sign_in, methods=["POST"]),
    Route("/sign-out", sign_out, methods=["POST"]),
    Route("/language", choose_language, methods=["POST"]),
]
