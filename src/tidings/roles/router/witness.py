"""Tells who may still bring events, on a connection of its own: what it saw is void when that connection is lost."""

from tidings.db.engine import Engine
from tidings.db.session import Session
from tidings.decisions.holes import Holes, unwitnessed, witnessed
from tidings.roles.router.operations import RouterOperations, in_flight

MOST_WRITERS = 20_000
FORGOTTEN_AT_ONCE = 1_000
# There is one for each event. So a router that was away for long has forgotten them all when it has routed half of what
# came meanwhile, and until then a pass does not cost a multiple of what it does.
FORGOTTEN_FOR_AN_EVENT, FEWEST_FORGOTTEN = 2, 100


class Witness:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._session: Session | None = None

    async def look(self, holes: Holes) -> Holes:
        """These holes and everybody who may still fill them; as they were if there is too much to look through."""
        if self._session is None or self._session.is_lost:
            holes = unwitnessed(holes)
        operations = await self._operations()
        # In this order: who commits in between is then taken for one who still writes, and waited for.
        settled = await operations.settled_writers(MOST_WRITERS)
        if len(settled) == MOST_WRITERS:
            await self.forget_settled(MOST_WRITERS)
            return holes
        present = await operations.present_writers(2 * MOST_WRITERS)
        return holes if len(present) == 2 * MOST_WRITERS else witnessed(holes, in_flight(present, settled))

    async def forget_after(self, events: int) -> None:
        """When so many were routed."""
        await self.forget_settled(max(FEWEST_FORGOTTEN, FORGOTTEN_FOR_AN_EVENT * events))

    async def forget_settled(self, most: int) -> None:
        """Removes markers of committed transactions, by list: a range would wait for open ones."""
        operations = await self._operations()
        while most > 0:
            at_once = min(most, FORGOTTEN_AT_ONCE)
            settled = await operations.settled_writers(at_once)
            if settled:
                await operations.forget_writers(settled)
            if len(settled) < at_once:
                break
            most -= at_once

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _operations(self) -> RouterOperations:
        if self._session is None or self._session.is_lost:
            self._session = await self._engine.own_session()
        return RouterOperations.on_session(self._session, self._engine.dialect)
