"""One page of a list, as the API answers it."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from tidings.api.context import Api, Observer
from tidings.roles.observer.listing import Page, Place


async def paged(
    api: Api,
    name: str,
    filters: Mapping[str, Any],
    cursor: str | None,
    observer: type[Observer],
    read: Callable[[Observer, Place | None], Awaitable[Page]],
    show: Callable[[Any], Any],
) -> dict[str, Any]:
    """`name` and `filters` are what a cursor is good for."""
    cursors = await api.cursors()
    list_name = json.dumps([name, {**filters}], default=str, sort_keys=True)
    place = cursors.read(list_name, cursor) if cursor else None
    found = await api.observed(observer, lambda operations: read(operations, place))
    return {
        "items": [show(item) for item in found.items],
        "next_cursor": cursors.written(list_name, found.next) if found.next else None,
    }
