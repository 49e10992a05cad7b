"""What the observer asks of a database whatever it looks for: its clock, its settings, and who is alive."""

import datetime

from tidings.db.operations import Operations
from tidings.decisions.diagnosing import ServerSetting

_SECONDS_ALIVE = 30.0


class ObserverOperations(Operations):
    async def server_clock(self) -> datetime.datetime:
        row = await self._row("server_clock")
        assert row is not None
        now: datetime.datetime = row["now"]
        return now

    async def alive(self) -> dict[str, int]:
        """How many processes of each kind gave a sign of life lately."""
        rows = await self._rows("alive_processes", seconds=_SECONDS_ALIVE)
        return {row["process"]: row["alive"] for row in rows}

    async def isolation(self) -> str:
        row = await self._row("isolation")
        assert row is not None
        return str(row["level"])

    async def durability(self) -> list[ServerSetting]:
        return [ServerSetting(**row) for row in await self._rows("durability")]

    async def id_generation(self) -> list[ServerSetting]:
        return [ServerSetting(**row) for row in await self._rows("id_generation")]
