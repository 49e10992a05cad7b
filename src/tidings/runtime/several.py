"""Several processes of the same kind, each an activity of the one that leads them: what crashed is begun again.

They have a session of their own, so that Ctrl-C at a terminal reaches the leader alone, which tells them once. Each
holds the end of a pipe from the leader: when that is gone, however it ended, they stop by themselves.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import partial

from tidings.errors import TidingsError
from tidings.runtime.supervisor import Activity

_STANDARD_INPUT = 0


def processes(name: str, commands: Sequence[Sequence[str]]) -> list[Activity]:
    """One for each command: arguments of this very Python, which say how the process is run."""
    return [Activity(f"{name} {number}", partial(_run, command)) for number, command in enumerate(commands, 1)]


async def _run(command: Sequence[str], stopping: asyncio.Event) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdin=asyncio.subprocess.PIPE, start_new_session=True
    )
    ended, told = asyncio.create_task(process.wait()), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait({ended, told}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            process.terminate()
            await ended
        elif not stopping.is_set():
            raise TidingsError(f"A process ended by itself, with code {ended.result()}.")
    finally:
        # Only where it was broken off: then it has had its time.
        if process.returncode is None:
            process.kill()
            await process.wait()
        told.cancel()
        await asyncio.wait({told, ended})


def stop_without_leader(stopping: asyncio.Event) -> None:
    """In one of several: sets the event when the leader's end of the pipe is closed."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(_STANDARD_INPUT, 1024):
            loop.remove_reader(_STANDARD_INPUT)
            stopping.set()

    loop.add_reader(_STANDARD_INPUT, look)
