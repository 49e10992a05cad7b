"""Runs actions as the roles of the database whose they are, in the name of the person at the keyboard."""

import asyncio
import getpass
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tidings.cli.context import installation
from tidings.db.engine import Engine
from tidings.db.operations import Operations
from tidings.runtime.wakeups import notify
from tidings.wiring import Installation

T = TypeVar("T")
Observer = TypeVar("Observer", bound=Operations)


def as_role(role: str, work: Callable[[Engine], Awaitable[T]], *, wakes: str = "") -> T:
    """What `work` gives, on the database of the settings and with the rights of this role.

    `wakes` is the process that has something to do then; it would notice by itself, a little later.
    """
    return on_installation(lambda found: _run(found, role, work, wakes))


def observed(observer: type[Observer], look: Callable[[Observer], Awaitable[T]]) -> T:
    """What a part of the observer sees, in one transaction."""
    return as_role("observer", lambda engine: observer.step(engine, look))


def on_installation(work: Callable[[Installation], Coroutine[Any, Any, T]]) -> T:
    """For what takes more than one role: what `work` gives, on the installation of the settings."""
    with installation(must_exist=True) as found:
        return asyncio.run(work(found))


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
