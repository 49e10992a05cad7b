"""The console as one ASGI application: its areas, how its errors are shown, and what every page forbids its browser."""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import cache
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tidings.api.faults import announce
from tidings.api.problems import CONTENT_TYPE, KINDS, Refused, document, of_error, of_http
from tidings.console import (
    assets,
    audit,
    dead_letters,
    events,
    keys,
    overview,
    requeues,
    routing,
    signing_in,
    subscriptions,
    tasks,
)
from tidings.console.declaring import person
from tidings.console.forms import Form
from tidings.console.page import Page
from tidings.console.saying import why_not
from tidings.errors import TidingsError

AREAS = (overview, events, subscriptions, dead_letters, requeues, tasks, routing, audit, keys)
FORM = b"application/x-www-form-urlencoded"
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
HEADERS: Mapping[bytes, bytes] = {
    b"content-security-policy": _POLICY.encode(),
    # Not `no-referrer`: with that browsers would say of our own forms that they come from nowhere.
    b"referrer-policy": b"same-origin",
    b"x-frame-options": b"DENY",
    b"cross-origin-opener-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
}
_NOT_OURS = ("/v1", "/healthz", "/readyz", "/metrics", "/openapi.json", "/docs")


def is_of_console(path: str) -> bool:
    return not any(path == other or path.startswith(f"{other}/") for other in _NOT_OURS)


@cache
def console() -> Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]:
    """Without a state of its own, as the API's application."""
    routes = [Route("/assets/{name}", assets.serve), *signing_in.routes]
    for area in AREAS:
        routes += area.routes
    app = Starlette(
        routes=routes,
        exception_handlers={
            Refused: _handler(lambda error: error),
            TidingsError: _handler(of_error),
            HTTPException: _handler(of_http),
            Exception: _handler(lambda error: of_error(TidingsError(""))),
        },
    )
    app.router.redirect_slashes = False
    return _guarded(app)


def _guarded(app: Starlette) -> Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]:
    async def serve(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        async def say(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS.items()]
            await send(message)

        await app(scope, receive, say)

    return serve


def _handler(refused: Callable[[Any], Refused]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, TidingsError):
            announce(request.scope, error)
        return await _shown(request, refused(error))

    return handle


async def _shown(request: Request, refused: Refused) -> Response:
    """A page for people; for programs the same document as the API's."""
    request_id = request.scope["tidings.request_id"]
    if "text/html" not in request.headers.get("accept", ""):
        status, body = document(refused, request.url.path, request_id)
        return Response(body, status, refused.headers, CONTENT_TYPE)
    status = KINDS[refused.code].status
    # Who asks stands in the database, which may be what failed.
    page = await person(request) if status < 500 else Page(request)
    if refused.code == "malformed":
        # A page leads back to itself with its query, which may be what can't be read.
        page.query = Form([])
    detail = why_not(page.words, refused)
    response = page.show("refused.html", status, code=refused.code, detail=detail, request_id=request_id)
    response.headers.update(refused.headers)
    return response
