"""What the clerk asks of the database."""

from collections.abc import Sequence
from typing import Any

from tidings.db.operations import Operations
from tidings.db.session import Row


class ClerkOperations(Operations):
    async def ask(self, name: str, **arguments: Any) -> Sequence[Row]:
        """The rows of any statement of this package."""
        return await self._rows(name, **arguments)

    async def do(self, name: str, **arguments: Any) -> int:
        """How many rows any statement of this package matched."""
        return await self._run(name, **arguments)

    async def settle(self) -> int:
        """Lock, decide, write: the whole step of the clerk."""
        orders = await self._rows("open_orders")
        await self._run("settle_orders", ids=[order["id"] for order in orders])
        await self._run("write_receipts", receipts=[(order["id"], order["amount"]) for order in orders])
        await self._run("add_to_till", amount=sum(order["amount"] for order in orders))
        return len(orders)
