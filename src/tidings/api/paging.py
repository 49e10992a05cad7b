"""Answers with one page of a list."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from tidings.api.context import Api
from tidings.db.operations import Operations
from tidings.roles.observer.pages import Page, PageObserver, Place

Observer = TypeVar("Observer", bound=Operations)


async def page(
    api: Api,
    name: str,
    filters: Mapping[str, Any],
    cursor: str | None,
    read: Callable[[PageObserver, Place | None], Awaitable[Page]],
    show: Callable[[Any], Any],
) -> dict[str, Any]:
    """`name` and `filters` are what a cursor is good for."""
    return await paged(api, name, filters, cursor, PageObserver, read, show)


async def paged(
    api: Api,
    name: str,
    filters: Mapping[str, Any],
    cursor: str | None,
    observer: type[Observer],
    read: Callable[[Observer, Place | None], Awaitable[Page]],
    show: Callable[[Any], Any],
) -> dict[str, Any]:
    """The same with another part of the observer."""
    cursors = await api.cursors()
    list_name = json.dumps([name, {**filters}], default=str, sort_keys=True)
    place = cursors.read(list_name, cursor) if cursor else None
    found = await api.as_role(
        "observer", lambda engine: observer.step(engine, lambda operations: read(operations, place))
    )
    return {
        "items": [show(item) for item in found.items],
        "next_cursor": cursors.written(list_name, found.next) if found.next else None,
    }
