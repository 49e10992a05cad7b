"""What the task archiver asks of the database and writes into it."""

from collections.abc import Collection, Sequence

from tidings.db.operations import Operations


class ArchiverOperations(Operations):
    async def finished_tasks(self, seconds: float, limit: int, but: Collection[int] = ()) -> list[int]:
        """Locked until the end of the transaction; what another archiver has locked is passed over."""
        rows = await self._rows("finished_tasks", seconds=seconds, limit=limit, but=list(but))
        return [row["id"] for row in rows]

    async def archive_tasks(self, ids: Sequence[int]) -> None:
        """From one table into the other."""
        await self._run("archive_tasks", ids=ids)
        await self._run("remove_tasks", ids=ids)
