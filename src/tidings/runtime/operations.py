"""What every running process writes about itself, as the role it runs."""

from tidings.db.operations import Operations


class PresenceOperations(Operations):
    async def arrive(self, worker_id: str, process: str, host: str, pid: int, version: str) -> None:
        await self._run("arrive", worker_id=worker_id, process=process, host=host, pid=pid, version=version)

    async def still_here(self, worker_id: str) -> bool:
        return bool(await self._run("still_here", worker_id=worker_id))

    async def leave(self, worker_id: str) -> None:
        await self._run("leave", worker_id=worker_id)

    async def forget_the_gone(self, seconds: float) -> None:
        await self._run("forget_the_gone", seconds=seconds)
