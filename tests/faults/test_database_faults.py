"""A step whose connection is cut anywhere ends as if nothing had happened: all of it done, and done once."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.db.statement_files.operations import ClerkOperations
from tests.db.statement_files.shelf import Shelf, opened_shelf
from tests.support.fault_proxy import CUT, Fault, FaultProxy
from tidings.db import engine as engine_module
from tidings.telemetry.bus import listening
from tidings.telemetry.notices import Notice

pytestmark = pytest.mark.slow

STATEMENTS = (
    "clerk.begin",
    "statement_files.open_orders",
    "statement_files.settle_orders",
    "statement_files.write_receipts",
    "statement_files.add_to_till",
    "clerk.commit",
)
ORDERS = [(1, 5), (2, 7), (3, 11)]

shelf = pytest.fixture(opened_shelf)


@pytest.fixture
def proxy(shelf: Shelf) -> Iterator[FaultProxy]:
    with FaultProxy(shelf.server.port, shelf.kind) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_FIRST_PAUSE", 0.005)


async def place_orders(shelf: Shelf) -> None:
    values = ", ".join(f"({id}, {amount})" for id, amount in ORDERS)
    await shelf.sql(f"INSERT INTO orders (id, amount) VALUES {values}")


async def assert_settled_once(shelf: Shelf) -> None:
    assert await shelf.value("SELECT COUNT(*) FROM orders WHERE status = 'settled'") == len(ORDERS)
    receipts = await shelf.sql("SELECT order_id, amount FROM receipts ORDER BY order_id")
    assert [tuple(receipt.values()) for receipt in receipts] == ORDERS
    assert await shelf.value("SELECT total FROM till") == sum(amount for _, amount in ORDERS)


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_connection_cut_at_any_statement_changes_nothing_in_the_end(
    shelf: Shelf, proxy: FaultProxy, statement: str, when: Any
) -> None:
    """The fence is the status: an order that is settled is not open."""
    await place_orders(shelf)
    clerk = await shelf.clerk(proxy.url(shelf.admin_url))
    proxy.arm(Fault(statement, CUT, when))
    notices: list[Notice] = []
    with listening(notices.append):
        settled = await ClerkOperations.step(clerk, ClerkOperations.settle)
    assert len(proxy.fired) == 1
    # A session that was lost before anything was asked is replaced without a word.
    assert len(notices) == (0 if statement == "clerk.begin" else 1)
    # Only where the commit took effect and nobody heard of it does the second run find nothing to do.
    assert settled == (0 if (statement, when) == ("clerk.commit", "after") else len(ORDERS))
    await assert_settled_once(shelf)
    await shelf.close()


async def test_a_step_that_is_cut_at_every_statement_in_turn_still_ends_once(shelf: Shelf, proxy: FaultProxy) -> None:
    await place_orders(shelf)
    clerk = await shelf.clerk(proxy.url(shelf.admin_url))
    proxy.arm(*(Fault(statement, CUT, "after") for statement in STATEMENTS))
    await ClerkOperations.step(clerk, ClerkOperations.settle)
    assert [fault.statement for fault in proxy.fired] == [*STATEMENTS]
    await assert_settled_once(shelf)
    await shelf.close()


async def test_a_second_step_has_nothing_left_to_do(shelf: Shelf) -> None:
    await place_orders(shelf)
    clerk = await shelf.clerk()
    assert await ClerkOperations.step(clerk, ClerkOperations.settle) == len(ORDERS)
    assert await ClerkOperations.step(clerk, ClerkOperations.settle) == 0
    await assert_settled_once(shelf)
