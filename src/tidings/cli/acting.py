"""Runs one action as one role of the database, in the name of the person at the keyboard."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidings.cli.context import installation
from tidings.db.engine import Engine
from tidings.wiring import Installation

T = TypeVar("T")


def as_role(role: str, work: Callable[[Engine], Awaitable[T]]) -> T:
    """What `work` gives, on the database of the settings and with the rights of this role."""
    with installation(must_exist=True) as found:
        return asyncio.run(_run(found, role, work))


async def _run(found: Installation, role: str, work: Callable[[Engine], Awaitable[T]]) -> T:
    async with found.engine(role) as engine:
        return await work(engine)


def person() -> str:
    """Who the audit log says it was."""
    try:
        return f"cli:{getpass.getuser()}"[:200]
    except (KeyError, OSError):
        # A user without a name, as in many containers.
        return "cli"
