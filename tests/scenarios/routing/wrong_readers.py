"""Readers with the two mistakes that are made most often. A check that lets them pass is blind."""

from collections.abc import Sequence

from tests.support.sessions import Session


class ByLastId:
    """Remembers only the last id it saw: what commits behind it is never seen."""

    def __init__(self, session: Session, position: int = 0) -> None:
        self.seen: set[int] = set()
        self.session, self._position = session, position

    async def step(self) -> None:
        self._take(await self._ids(f"id > {self._position}"))

    def _take(self, ids: Sequence[int]) -> None:
        self.seen.update(ids)
        self._position = max(self._position, *ids) if ids else self._position

    async def _ids(self, condition: str) -> list[int]:
        return [row[0] for row in await self.session.run(f"SELECT id FROM events WHERE {condition}")]


class Forgetful(ByLastId):
    """Remembers holes, but gives each of them up after so many looks."""

    def __init__(self, session: Session, position: int = 0, patience: int = 3) -> None:
        super().__init__(session, position)
        self._patience = patience
        self._holes: dict[int, int] = {}

    async def step(self) -> None:
        await super().step()
        if self._holes:
            found = await self._ids(f"id IN ({', '.join(map(str, self._holes))})")
            self.seen.update(found)
            left = {hole: looks - 1 for hole, looks in self._holes.items() if hole not in found}
            self._holes = {hole: looks for hole, looks in left.items() if looks}

    def _take(self, ids: Sequence[int]) -> None:
        before = self._position
        super()._take(ids)
        self._holes |= dict.fromkeys(set(range(before + 1, self._position)) - set(ids), self._patience)
