"""The application: the routers, how errors are answered, and the OpenAPI document."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

import tidings
from tidings.api import dead_letters, events, observing, reference, routing, sagas, subscriptions, tasks
from tidings.api.context import Api
from tidings.api.examples import with_examples
from tidings.api.faults import announce
from tidings.api.front import Front
from tidings.api.problems import CONTENT_TYPE, MOST_TOLD, Problem, Refused, document, of_error, of_http
from tidings.console.app import console
from tidings.errors import TidingsError

_PREFIX = "/v1"
_PARTS = (events, subscriptions, sagas, dead_letters, routing, tasks, observing)
_DESCRIPTION = """Publish events, look where they are, act on what was given up.

Every request but those for health carries `Authorization: Bearer KEY`; `tidings keys add` makes keys. The scopes:
`publisher` may only publish, `viewer` reads, `operator` also acts, `admin` does everything. A key may be bound to one
event domain. Errors are `application/problem+json`. Lists are paged by `limit` and `cursor`."""


def build(api: Api) -> Front:
    """The whole API, and the console, as one ASGI application."""
    return Front(api, application(), console())


class _Application(FastAPI):
    """Described once, and by what we say of it."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = _openapi(self)
        return self.openapi_schema


@cache
def application() -> FastAPI:
    """Without a state of its own: the front says with each request which API it belongs to."""
    app = _Application(
        title="Tidings",
        version=tidings.__version__,
        description=_DESCRIPTION,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    for part in _PARTS:
        app.include_router(part.router, prefix=_PREFIX)
    app.include_router(observing.health)
    _answer_errors(app)
    app.state.queries = _queries(app.openapi())
    reference.add_to(app)
    return app


def _answer_errors(app: FastAPI) -> None:
    """What nobody planned for, the framework answers here and raises on to the front, which announces it."""
    for kind, refused in _REFUSALS.items():
        app.add_exception_handler(kind, _handler(refused))


def _handler(refused: Callable[[Any], Refused]) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, TidingsError):
            announce(request.scope, error)
        said = refused(error)
        status, body = document(said, request.url.path, request.scope["tidings.request_id"])
        return Response(body, status, said.headers, CONTENT_TYPE)

    return handle


def _invalid(error: RequestValidationError) -> Refused:
    """Each part that is wrong, by where it stands; never what was given, which may be secret."""
    told = [(_pointer(one["loc"]), str(one["msg"])) for one in error.errors()[:MOST_TOLD]]
    if any(one["type"] == "json_invalid" for one in error.errors()):
        return Refused("malformed", "The body is no JSON.", told)
    return Refused("invalid", "; ".join(f"{pointer or 'the body'}: {said}" for pointer, said in told[:3]), told)


def _pointer(place: Sequence[Any]) -> str:
    where, *rest = place
    if where == "body":
        return "".join(f"/{_escaped(str(step))}" for step in rest)
    return f"{'?' if where == 'query' else '#'}{'.'.join(map(str, rest))}"


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")


def _openapi(app: FastAPI) -> dict[str, Any]:
    """What FastAPI makes of the routes, with our errors, and with the way to say who one is."""
    made: dict[str, Any] = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for model in (Problem, events.EventIn):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schemas[model.__name__] = schema
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    with_examples(schemas)
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "An API key; `tidings keys add` makes one."}
    }
    return made


def _queries(openapi: Mapping[str, Any]) -> dict[Any, frozenset[str]]:
    """Which query parameters each handler knows."""
    routes = [
        (f"{_PREFIX}{one.path}", one) for part in _PARTS for one in part.router.routes if isinstance(one, APIRoute)
    ]
    routes += [(one.path, one) for one in observing.health.routes if isinstance(one, APIRoute)]
    known: dict[Any, frozenset[str]] = {}
    for path, route in routes:
        for method in route.methods or ():
            parameters = openapi["paths"][path][method.lower()].get("parameters", ())
            known[route.endpoint] = frozenset(one["name"] for one in parameters if one["in"] == "query")
    return known


_REFUSALS: Mapping[type[Exception], Callable[[Any], Refused]] = {
    Refused: lambda error: error,
    TidingsError: of_error,
    RequestValidationError: _invalid,
    HTTPException: of_http,
    Exception: lambda error: of_error(TidingsError("")),
}
