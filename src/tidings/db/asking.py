"""A flow of statements without a connection: a generator that asks one after the other and is sent their rows.

So one text of what is done, and in which order, serves every driver that a caller may have, and our own.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

MOST_ROWS = 500
MOST_BYTES = 4 * 1024 * 1024
"""Of payloads in one statement: written out as hex it still fits in the 16 MiB that MariaDB takes by default."""

T = TypeVar("T")


class Ask(NamedTuple):
    """One statement to be run, by its name in operations.sql."""

    statement: str
    arguments: dict[str, Any]


Rows = Sequence[Mapping[str, Any]]
Flow = Generator[Ask, Rows, T]


def batches(items: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """In the same order, so few and so small that one statement can carry each; `size` tells the bytes of one."""
    batch: list[T] = []
    taken = 0
    for item in items:
        more = size(item)
        if batch and (len(batch) == MOST_ROWS or taken + more > MOST_BYTES):
            yield batch
            batch, taken = [], 0
        batch.append(item)
        taken += more
    if batch:
        yield batch


def text_size(text: str) -> int:
    """In bytes, as UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
