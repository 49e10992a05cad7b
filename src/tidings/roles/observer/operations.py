"""The questions the observer may ask of a database."""

import datetime

from tidings.db.operations import Operations
from tidings.decisions.diagnosing import ServerSetting


class ObserverOperations(Operations):
    async def server_clock(self) -> datetime.datetime:
        row = await self._row("server_clock")
        assert row is not None
        now: datetime.datetime = row["now"]
        return now

    async def isolation(self) -> str:
        row = await self._row("isolation")
        assert row is not None
        return str(row["level"])

    async def durability(self) -> list[ServerSetting]:
        return [ServerSetting(**row) for row in await self._rows("durability")]

    async def id_generation(self) -> list[ServerSetting]:
        return [ServerSetting(**row) for row in await self._rows("id_generation")]
