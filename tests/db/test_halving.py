"""The rows that the database refuses are found among many, and leave no trace; the others are written."""

from collections.abc import Sequence

import pytest

from tests.db.statement_files.operations import ClerkOperations
from tests.db.statement_files.shelf import Shelf, opened_shelf
from tidings.db.halving import write_by_halves
from tidings.errors import StatementDenied, StatementFailed

shelf = pytest.fixture(opened_shelf)


async def written(shelf: Shelf, numbers: Sequence[int]) -> tuple[list[int], int]:
    """Who was refused, and in how many tries."""
    tries = 0

    async def work(operations: ClerkOperations) -> list[int]:
        async def write(some: Sequence[int]) -> None:
            nonlocal tries
            tries += 1
            await operations.do("write_receipts", receipts=[(number, number) for number in some])
            await operations.do("put_orders", orders=[(number, 1) for number in some])

        return [number for number, _ in await write_by_halves(operations, numbers, write)]

    return await ClerkOperations.step(await shelf.clerk(), work), tries


async def test_the_others_are_written_and_what_is_refused_leaves_no_trace(shelf: Shelf) -> None:
    await shelf.sql("INSERT INTO orders (id, amount) VALUES (7, 1), (400, 1)")
    refused, tries = await written(shelf, range(1, 501))
    assert refused == [7, 400]
    # Each of the two is found by halving nine times, with a try for either half.
    assert tries <= 2 * 2 * 10
    assert await shelf.value("SELECT COUNT(*) FROM orders") == 500
    assert await shelf.value("SELECT COUNT(*) FROM receipts") == 498
    assert await shelf.value("SELECT COUNT(*) FROM receipts WHERE order_id IN (7, 400)") == 0


async def test_where_nothing_is_refused_there_is_one_try(shelf: Shelf) -> None:
    assert await written(shelf, range(1, 501)) == ([], 1)
    assert await written(shelf, []) == ([], 0)


async def test_what_has_nothing_to_do_with_the_rows_sets_none_of_them_aside(shelf: Shelf) -> None:
    await shelf.sql("DROP TABLE orders")
    with pytest.raises(StatementDenied):
        await written(shelf, range(1, 9))
    assert await shelf.value("SELECT COUNT(*) FROM receipts") == 0


def test_a_denial_is_a_failure_too() -> None:
    assert issubclass(StatementDenied, StatementFailed)
