"""Finds the few rows that the database refuses among many: by halves under savepoints, in a logarithm of tries."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tidings.db.operations import Operations
from tidings.errors import StatementDenied, StatementFailed

T = TypeVar("T")


async def write_by_halves(
    operations: Operations, items: Sequence[T], write: Callable[[Sequence[T]], Awaitable[None]]
) -> list[tuple[T, StatementFailed]]:
    """Writes what can be written; what is refused stands alone at the end, with the reason, and has left no trace."""
    if not items:
        return []
    try:
        async with operations.savepoint():
            await write(items)
        return []
    except StatementDenied:
        raise  # whatever the rows, so none of them is to blame
    except StatementFailed as error:
        if len(items) == 1:
            return [(items[0], error)]
    middle = len(items) // 2
    return [
        *await write_by_halves(operations, items[:middle], write),
        *await write_by_halves(operations, items[middle:], write),
    ]
