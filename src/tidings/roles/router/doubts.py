"""Whether a router may trust the log: it is the one its cursor knew, and it can be proven that nothing is missed."""

import time

from tidings.errors import RouterHeld
from tidings.roles.router.operations import Cursor, RoutedEvent, RouterOperations, Standing

_SECONDS_BETWEEN_PROOFS = 5.0


class Doubts:
    def __init__(self) -> None:
        self._proven_at = float("-inf")

    async def refuse_if_any(self, operations: RouterOperations, cursor: Cursor) -> Standing:
        """RouterHeld, or what else is known of this moment."""
        standing = await operations.standing(cursor.worker_name)
        if not standing.is_same:
            raise another_log(cursor)
        drawn = await operations.last_number()
        if drawn < cursor.position:
            raise RouterHeld(f"Event ids are at {drawn}, behind {cursor.position}, which was routed.", _remedy(cursor))
        await self._refuse_if_unprovable(operations)
        return standing

    async def _refuse_if_unprovable(self, operations: RouterOperations) -> None:
        now = time.monotonic()
        if now - self._proven_at < _SECONDS_BETWEEN_PROOFS:
            return
        wrong = [condition for condition in await operations.proof_conditions() if not condition.is_right]
        if wrong:
            raise RouterHeld(
                "It can't be proven that no event is skipped: "
                + "; ".join(f"{one.name} is {one.value}, not {one.wanted}" for one in wrong),
                "Put that right on the server; `tidings doctor` shows it too.",
            )
        self._proven_at = now


async def is_lost(operations: RouterOperations, cursor: Cursor, known: RoutedEvent) -> bool:
    """Whether an event that we know was routed is not there, or its id was given to another one.

    After a failover with loss the cursor has gone back together with the log, and by itself shows nothing of it.
    One that is gone while the cursor is beyond it was removed with its story.
    """
    found = await operations.correlation_of(known.id)
    return cursor.position < known.id if found is None else found != known.correlation_id


def another_log(cursor: Cursor) -> RouterHeld:
    return RouterHeld(f"Event {cursor.last_event_id}, the last one routed, is gone or is another one.", _remedy(cursor))


def _remedy(cursor: Cursor) -> str:
    return f"Find out what happened to the log, then `tidings routers confirm {cursor.worker_name}`."
