"""What all lists of the observer have in common: where they begin and end, how rows are shown, pages of them."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tidings.db.session import Row
from tidings.model.id import BIGGEST_ID

END = BIGGEST_ID
EVER = datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)
NEVER = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)
SHOWN_OF_ONE = 200
"""How much of what belongs to one thing is shown with it."""
MOST_ROUTERS = 1000
"""Far more than there are: whoever asks for so many asks for all."""

Shown = Mapping[str, Any]
Place = list[Any]
"""Where the next page begins, as a cursor carries it."""


@dataclass(frozen=True)
class Page:
    items: Sequence[Any]
    next: Place | None


def dicts(rows: Sequence[Row]) -> list[Shown]:
    return [dict(row) for row in rows]


def by_id(row: Row) -> Place:
    return [row["id"]]


def page_of(rows: Sequence[Row], limit: int, place_of: Callable[[Row], Place] = by_id) -> Page:
    """A page that is full has a next one."""
    return Page(dicts(rows), place_of(rows[-1]) if len(rows) == limit else None)


def moment(text: str) -> datetime.datetime:
    """From a place, which carries it as text."""
    return datetime.datetime.fromisoformat(text)


def shown_job(row: Row) -> Shown:
    """What the endpoint answered is shown as text, whatever it was."""
    excerpt = row["response_excerpt"]
    return {**row, "response_excerpt": bytes(excerpt).decode("utf-8", "replace") if excerpt else None}
