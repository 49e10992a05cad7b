"""The clients: the same operations, one that waits for each answer, and one that is awaited."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx
import msgspec

from tidings.remote.answers import Page
from tidings.remote.calling import Call, pause_before_repeating
from tidings.remote.errors import ApiError, ApiUnreachable, error_of
from tidings.remote.operations import delivering, publishing, routing, subscribing, working

P = ParamSpec("P")
T = TypeVar("T")

_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Operation(Generic[P, T]):
    """A method that makes one call: its answer of a `Client`, an awaitable of it of an `AsyncClient`."""

    def __init__(self, call: Callable[P, Call[T]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, client: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, client: "Client", owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: "AsyncClient", owner: Any) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: "Client | AsyncClient | None", owner: Any) -> Any:
        if client is None:
            return self
        make = client.make

        @wraps(self._call)
        def ask(*arguments: P.args, **named: P.kwargs) -> Any:
            return make(self._call(*arguments, **named))

        return ask


class Listing(Generic[P, T]):
    """A method that goes through all pages of a list: an iterator, or an async one. Pages come when they are needed."""

    def __init__(self, call: Callable[P, Call[Page[T]]]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    @overload
    def __get__(self, client: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, client: "Client", owner: Any) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: "AsyncClient", owner: Any) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, client: "Client | AsyncClient | None", owner: Any) -> Any:
        if client is None:
            return self
        each = client.each

        @wraps(self._call)
        def walk(*arguments: P.args, **named: P.kwargs) -> Any:
            return each(self._call(*arguments, **named))

        return walk


class Surface:
    """Everything the API can do."""

    publish = Operation(publishing.publish)
    publish_many = Operation(publishing.publish_many)
    events = Listing(publishing.events)
    event = Operation(publishing.event)
    subscriptions = Listing(subscribing.subscriptions)
    subscription = Operation(subscribing.subscription)
    add_subscription = Operation(subscribing.add_subscription)
    change_subscription = Operation(subscribing.change_subscription)
    pause_subscription = Operation(subscribing.pause_subscription)
    resume_subscription = Operation(subscribing.resume_subscription)
    verify_subscription = Operation(subscribing.verify_subscription)
    test_subscription = Operation(subscribing.test_subscription)
    rotate_secret = Operation(subscribing.rotate_secret)
    replay_subscription = Operation(subscribing.replay_subscription)
    sagas = Listing(delivering.sagas)
    saga = Operation(delivering.saga)
    resend = Operation(delivering.resend)
    dead_letters = Listing(delivering.dead_letters)
    dead_letter = Operation(delivering.dead_letter)
    requeue = Operation(delivering.requeue)
    requeue_many = Operation(delivering.requeue_many)
    requeues_of_many = Listing(delivering.requeues_of_many)
    requeue_of_many = Operation(delivering.requeue_of_many)
    resume_requeue = Operation(delivering.resume_requeue)
    cancel_requeue = Operation(delivering.cancel_requeue)
    routes = Listing(routing.routes)
    route = Operation(routing.route)
    add_route = Operation(routing.add_route)
    change_route = Operation(routing.change_route)
    remove_route = Operation(routing.remove_route)
    gates = Listing(routing.gates)
    gate = Operation(routing.gate)
    open_gate = Operation(routing.open_gate)
    close_gate = Operation(routing.close_gate)
    routers = Listing(routing.routers)
    router = Operation(routing.router)
    route_dead_letters = Listing(routing.route_dead_letters)
    route_dead_letter = Operation(routing.route_dead_letter)
    replay_route_dead_letter = Operation(routing.replay_route_dead_letter)
    submit_task = Operation(working.submit_task)
    tasks = Listing(working.tasks)
    task = Operation(working.task)
    retry_task = Operation(working.retry_task)
    cancel_task = Operation(working.cancel_task)
    why = Operation(working.why)
    stats = Operation(working.stats)


class Client(Surface):
    """`with tidings.Client("http://127.0.0.1:8420", key="tid_…") as client: client.publish("order.paid", {…})`.

    `retries` is how often a call is made again, where that is safe; `timeout` is in seconds, of one try. Whatever else
    httpx.Client takes can be given too, such as `verify` and `proxy`.
    """

    def __init__(self, url: str, key: str, *, retries: int = 4, timeout: float = 30, **http: Any) -> None:
        self._retries = retries
        self._http = httpx.Client(base_url=url, headers=_headers(key), timeout=timeout, **http)

    def make(self, call: Call[T]) -> T:
        for attempt in range(self._retries + 1):
            try:
                return _answer(call, self._http.request(**_request(call)))
            except Exception as error:
                time.sleep(_pause(call, error, attempt, self._retries))
        raise AssertionError("unreachable")

    def each(self, call: Call[Page[T]]) -> Iterator[T]:
        while True:
            page = self.make(call)
            yield from page.items
            if page.next_cursor is None:
                return
            call = _next(call, page.next_cursor)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(Surface):
    """The same for asyncio: `async with tidings.AsyncClient(url, key=…) as client: await client.publish(…)`."""

    def __init__(self, url: str, key: str, *, retries: int = 4, timeout: float = 30, **http: Any) -> None:
        self._retries = retries
        self._http = httpx.AsyncClient(base_url=url, headers=_headers(key), timeout=timeout, **http)

    async def make(self, call: Call[T]) -> T:
        for attempt in range(self._retries + 1):
            try:
                return _answer(call, await self._http.request(**_request(call)))
            except Exception as error:
                await asyncio.sleep(_pause(call, error, attempt, self._retries))
        raise AssertionError("unreachable")

    async def each(self, call: Call[Page[T]]) -> AsyncIterator[T]:
        while True:
            page = await self.make(call)
            for item in page.items:
                yield item
            if page.next_cursor is None:
                return
            call = _next(call, page.next_cursor)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Accept": "application/json"}


def _request(call: Call[Any]) -> dict[str, Any]:
    kind = {"Content-Type": "application/json"} if call.body is not None else {}
    headers: Mapping[str, str] = {**kind, **call.headers}
    return {
        "method": call.method,
        "url": call.path,
        "params": dict(call.query),
        "content": call.body,
        "headers": headers,
    }


def _answer(call: Call[T], response: httpx.Response) -> T:
    if not response.is_success:
        raise error_of(response.status_code, response.content, response.headers)
    try:
        return call.read(response.content)
    except msgspec.DecodeError as error:
        # As of a proxy that shows its page for signing in.
        problem = {"detail": f"What answered with {response.status_code} is not this API, or another version of it."}
        raise ApiError(response.status_code, problem, "", None) from error


def _next(call: Call[T], cursor: str) -> Call[T]:
    return replace(call, query={**call.query, "cursor": cursor})


def _pause(call: Call[Any], error: Exception, attempt: int, retries: int) -> float:
    """How long to wait before the next try; raises what went wrong if there must be none."""
    told = error
    if isinstance(error, httpx.TransportError):
        told = ApiUnreachable(
            f"The API did not answer: {error or type(error).__name__}.", "Is it running, and reachable?"
        )
    elif not isinstance(error, ApiError):
        raise error
    seconds = pause_before_repeating(call, told, not isinstance(error, _NOT_SENT), attempt, random.random())
    if seconds < 0 or attempt == retries:
        raise told from (error if told is not error else None)
    return seconds
