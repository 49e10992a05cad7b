"""Does what a flow asks for on the caller's own connection, whatever driver that is of.

Nothing here begins, commits or rolls back, and no savepoint is made.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tidings.client.binding import bind
from tidings.client.connections import opened, recognise
from tidings.client.drivers import OpeningWay, Way
from tidings.db.asking import Ask, Flow
from tidings.db.statements import load_statements
from tidings.errors import InputRefused

T = TypeVar("T")
R = TypeVar("R")

_SCHEMA = re.compile(r"[a-z][a-z0-9_]{0,29}")


def drive(connection: Any, package: str, schema: str, flow: Flow[T]) -> T | Coroutine[Any, Any, T]:
    """What the flow comes to, with the statements of this role; an awaitable of it if the connection is async."""
    way, named = recognise(connection), _named(schema)
    if isinstance(way, Way) and not way.is_async:
        return _driven(way, package, named, flow)
    return _driven_async(way, connection, package, named, flow)


def then(result: T | Awaitable[T], further: Callable[[T], R]) -> R | Coroutine[Any, Any, R]:
    """The same, with what is made of the result; awaited only if it must be."""

    async def awaited(result: Awaitable[T]) -> R:
        return further(await result)

    return awaited(result) if isinstance(result, Awaitable) else further(result)


def _driven(way: Way, package: str, schema: str, flow: Flow[T]) -> T:
    try:
        ask = next(flow)
        while True:
            ask = flow.send(way.fetch(*_bound(way, package, schema, ask)))
    except StopIteration as end:
        result: T = end.value
        return result


async def _driven_async(way: Way | OpeningWay, connection: Any, package: str, schema: str, flow: Flow[T]) -> T:
    way = await opened(way, connection)
    try:
        ask = next(flow)
        while True:
            ask = flow.send(await way.fetch(*_bound(way, package, schema, ask)))
    except StopIteration as end:
        result: T = end.value
        return result


def _bound(way: Way, package: str, schema: str, ask: Ask) -> tuple[str, tuple[Any, ...]]:
    return bind(load_statements(package, way.dialect, schema)[ask.statement], ask.arguments, way.mark)


def _named(schema: str) -> str:
    if not isinstance(schema, str) or not _SCHEMA.fullmatch(schema):
        raise InputRefused(
            f"{schema!r} is no name of a schema of Tidings.", "Give the one that the settings have.", field="schema"
        )
    return schema
