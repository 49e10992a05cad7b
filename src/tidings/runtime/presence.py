"""Records that a process is alive, for those who look; nothing depends on it."""

import asyncio
import os
import secrets
import socket
from contextlib import suppress

import tidings
from tidings.db.engine import Engine
from tidings.errors import TidingsError
from tidings.runtime.loop import pause
from tidings.runtime.operations import PresenceOperations
from tidings.telemetry.bus import tell
from tidings.telemetry.notices import StepFailed

SECONDS_BETWEEN_SIGNS = 10.0
SECONDS_TO_LEAVE = 2.0


def new_worker_id(process: str) -> str:
    """Readable, and never the same twice."""
    return f"{process}:{socket.gethostname()[:50]}:{os.getpid()}:{secrets.token_hex(4)}"


async def show_presence(engine: Engine, worker_id: str, process: str, stopping: asyncio.Event) -> None:
    """Until all must stop."""
    while not stopping.is_set():
        try:
            await PresenceOperations.alone(engine, lambda operations: _sign(operations, worker_id, process))
        except TidingsError as error:
            tell(StepFailed(f"presence of {process}", error.what, SECONDS_BETWEEN_SIGNS))
        await pause(stopping, SECONDS_BETWEEN_SIGNS)
    # If it can't be done, it will be forgotten.
    with suppress(TidingsError, TimeoutError):
        leaving = PresenceOperations.alone(engine, lambda operations: operations.mark_gone(worker_id))
        await asyncio.wait_for(leaving, SECONDS_TO_LEAVE)


async def _sign(operations: PresenceOperations, worker_id: str, process: str) -> None:
    await operations.mark_present(worker_id, process, socket.gethostname()[:255], os.getpid(), tidings.__version__)
