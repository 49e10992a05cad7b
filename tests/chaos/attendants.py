"""The processes beside the product that a run needs: each is told things by lines, and answers by lines."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support import families, watchdog
from tests.support.processes import INHERITED

ROOT = Path(__file__).parents[2]


class Attendant:
    """A module of the tests as a process of its own; `on_line` gets each line that it says."""

    def __init__(self, module: str, *arguments: str, on_line: Callable[[list[str]], None] | None = None) -> None:
        self._argv = [sys.executable, "-m", module, *arguments]
        self.on_line = on_line or (lambda words: None)
        self._heard: asyncio.Queue[list[str]] = asyncio.Queue()

    async def start(self, environment: dict[str, str] | None = None) -> "Attendant":
        bare = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._process = await asyncio.create_subprocess_exec(
            *self._argv,
            cwd=ROOT,
            env={**bare, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", **(environment or {})},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        watchdog.guard_process(self._process.pid)
        self._leader = psutil.Process(self._process.pid)
        self._reading = asyncio.create_task(self._read())
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    async def next_line(self) -> list[str]:
        """The next line in words; `on_line` gets it, too."""
        return await asyncio.wait_for(self._heard.get(), 60)

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def wait(self) -> int:
        return await self._process.wait()

    async def stop(self) -> None:
        """With everybody whom it started."""
        await asyncio.to_thread(families.kill, self._leader)
        await self._process.wait()
        watchdog.release_process(self._process.pid)
        self._reading.cancel()
        with suppress(asyncio.CancelledError):
            await self._reading
        # Closed here: a transport that is collected later complains to whoever runs by then.
        self._process._transport.close()  # type: ignore[attr-defined]

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            words = line.decode().split()
            self._heard.put_nowait(words)
            self.on_line(words)
