"""What every request passes first: its id, its size and kind, its key; and what every answer passes last.

`POST /v1/events` is answered from here, without the framework: it is the one path whose speed matters.
"""

import math
from collections.abc import Awaitable, Callable

from tidings.api.context import Api, refuse_unless
from tidings.api.deadlines import Deadlines
from tidings.api.denials import Denials
from tidings.api.exchange import JSON, ASGIScope, Exchange, Receive, Send, replayed, request_id_of
from tidings.api.faults import announce
from tidings.api.origins import origin
from tidings.api.problems import Refused, of_error
from tidings.api.publishing import MOST_BYTES, Publisher
from tidings.api.throttle import name_of
from tidings.console.app import FORM, is_of_console
from tidings.decisions.keys import may_be_guessed, what_is_wrong
from tidings.errors import TidingsError
from tidings.model.key import Caller, Scope
from tidings.telemetry.asking import asking

App = Callable[[ASGIScope, Receive, Send], Awaitable[None]]

# From the first byte of a request to the last of its answer.
SECONDS = 60.0
# Beside the payload of a task there are a few short fields.
_ROOM = 64 * 1024
_PUBLISH = ("POST", "/v1/events")
FORBIDDEN = 403


class Front:
    def __init__(self, api: Api, app: App, console: App) -> None:
        self._api = api
        self._app = app
        self._console = console
        self._publisher = Publisher(api)
        self._denials = Denials(api)
        self._deadlines = Deadlines(SECONDS)
        self._most = api.limits.max_payload + _ROOM

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        if self._api.proxies and scope.get("client"):
            peer, port = scope["client"]
            scope["client"] = (origin(peer, scope["headers"], self._api.proxies), port)
        publishes = (scope["method"], scope["path"]) == _PUBLISH
        room = MOST_BYTES if publishes else self._most
        exchange = Exchange(scope, receive, send, headers, request_id_of(headers), room)
        scope["tidings.request_id"], scope["tidings.api"] = exchange.request_id, self._api
        asking(exchange.request_id, exchange.address)
        await self._serve(exchange, publishes)
        if exchange.status == FORBIDDEN and (caller := scope.get("tidings.caller")):
            await self._denials.denied(caller, scope["method"], scope["path"])

    async def _serve(self, exchange: Exchange, publishes: bool) -> None:
        scope = exchange.scope
        try:
            with self._deadlines:
                await self._answer(exchange, publishes)
        except Refused as refused:
            await self._refuse(exchange, refused)
        except TidingsError as error:
            announce(scope, error)
            await self._refuse(exchange, of_error(error))
        except TimeoutError:
            await self._refuse(exchange, _too_late(exchange))
        except Exception as error:
            announce(scope, error)
            await self._refuse(exchange, of_error(TidingsError("")))

    async def _answer(self, exchange: Exchange, publishes: bool) -> None:
        if not publishes and is_of_console(exchange.scope["path"]):
            await self._show(exchange)
            return
        exchange.check_head(JSON)
        if exchange.scope["path"].startswith("/v1/"):
            exchange.scope["tidings.caller"] = await self._caller(exchange)
        if publishes:
            await self._publish(exchange)
        else:
            body = await exchange.body()
            await self._app(exchange.scope, replayed(body, exchange.receive), exchange.say)

    async def _show(self, exchange: Exchange) -> None:
        exchange.check_head(FORM)
        body = await exchange.body()
        await self._console(exchange.scope, replayed(body, exchange.receive), exchange.say)

    async def _publish(self, exchange: Exchange) -> None:
        caller: Caller = exchange.scope["tidings.caller"]
        refuse_unless(caller, Scope.PUBLISHER)
        if exchange.scope["query_string"]:
            raise Refused("invalid", "Publishing takes no query parameters.", [("?", "is not expected")])
        key = exchange.headers.get(b"idempotency-key")
        await exchange.accept(await self._publisher.published(caller, await exchange.body(), key))

    async def _caller(self, exchange: Exchange) -> Caller:
        given = [value for name, value in exchange.scope["headers"] if name == b"authorization"]
        scheme, _, key = given[0].decode("latin-1").partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthenticated("Send one header `Authorization: Bearer KEY`.")
        caller = await self._known(key.strip(), exchange.address)
        if caller is None:
            raise _unauthenticated(what_is_wrong(key.strip()))
        return caller

    async def _known(self, key: str, address: str) -> Caller | None:
        """Whose key it is. From where too many were wrong lately, one that could have been guessed is not looked at."""
        throttle, name = self._api.throttle, name_of(address)
        wait = throttle.seconds_left(name)
        if wait and may_be_guessed(key):
            raise _too_often(wait)
        caller = await self._api.checker.caller(key)
        if caller is None:
            throttle.failed(name)
            if wait:
                raise _too_often(wait)
            if throttle.holds(name):
                await self._denials.throttled(address)
        return caller

    async def _refuse(self, exchange: Exchange, refused: Refused) -> None:
        if not exchange.status:
            await exchange.refuse(refused)


def _too_late(exchange: Exchange) -> Refused:
    if exchange.complete:
        return Refused("outcome_unknown", "It took too long. Look before you ask again.")
    return Refused("too_slow", f"The body did not come within {SECONDS:.0f} seconds.")


def _too_often(wait: float) -> Refused:
    seconds = math.ceil(wait)
    return Refused(
        "limit_reached",
        f"Too many keys from this address were wrong. Try again in {seconds} seconds.",
        headers={"Retry-After": str(seconds)},
    )


def _unauthenticated(detail: str) -> Refused:
    return Refused("unauthenticated", detail, headers={"WWW-Authenticate": 'Bearer realm="tidings"'})
