"""Pages for people who look for something, by whatever they know of it.

Where no index serves a filter, a page looks at so many rows along one and shows those that fit: it may be short, or
empty, and still have a next one.
"""

from collections.abc import Callable
from typing import Any

from tidings.db.operations import Operations
from tidings.db.session import Row
from tidings.roles.observer.listing import Page, Place, dicts, page_of
from tidings.roles.observer.pages import WINDOW


class LookingObserver(Operations):
    async def _looked(
        self, name: str, place_of: Callable[[Row], Place], limit: int, is_filtered: bool, **arguments: Any
    ) -> Page:
        """A page of the statement `name`; what `name_end` tells is how far it has looked."""
        most = WINDOW if is_filtered else limit
        fitting = self._arguments_of(name, arguments)
        rows = await self._rows(name, most=most, limit=limit, **fitting)
        if len(rows) == limit or not is_filtered:
            return page_of(rows, limit, place_of)
        # After the rows: what is written in between may be shown twice then, and never left out.
        end = await self._row(f"{name}_end", most=most, **self._arguments_of(f"{name}_end", arguments))
        return Page(dicts(rows), place_of(end) if end and end["seen"] == WINDOW else None)

    def _arguments_of(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        return {one: value for one, value in given.items() if one in self._statements[name].arguments}
