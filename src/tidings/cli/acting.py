"""Runs one action as one role of the database, in the name of the person at the keyboard."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidings.cli.context import installation
from tidings.db.engine import Engine
from tidings.runtime.wakeups import notify
from tidings.wiring import Installation

T = TypeVar("T")


def as_role(role: str, work: Callable[[Engine], Awaitable[T]], *, wakes: str = "") -> T:
    """What `work` gives, on the database of the settings and with the rights of this role.

    `wakes` is the process that has something to do then; it would notice by itself, a little later.
    """
    with installation(must_exist=True) as found:
        return asyncio.run(_run(found, role, work, wakes))


async def _run(found: Installation, role: str, work: Callable[[Engine], Awaitable[T]], wakes: str) -> T:
    async with found.engine(role) as engine:
        done = await work(engine)
        if wakes and found.settings.database.notify != "off":
            await notify(engine, found.names.schema, wakes)
        return done


def person() -> str:
    """Who the audit log says it was."""
    try:
        return f"cli:{getpass.getuser()}"[:200]
    except (KeyError, OSError):
        # A user without a name, as in many containers.
        return "cli"
