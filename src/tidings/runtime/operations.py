"""What every running process tells about itself, as the role it runs: through routines, since it may write no table
but its own."""

from tidings.db.operations import Operations


class PresenceOperations(Operations):
    async def mark_present(self, worker_id: str, process: str, host: str, pid: int, version: str) -> None:
        await self._rows("mark_present", worker_id=worker_id, process=process, host=host, pid=pid, version=version)

    async def mark_gone(self, worker_id: str) -> None:
        await self._rows("mark_gone", worker_id=worker_id)
